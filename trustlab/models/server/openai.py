"""Asks any OpenAI-compatible server: which calls, how many at once, what if one fails.

Address and key come from ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. Probabilities are the
server's: at temperature 1 where it says so, as most do; the server's own defaults (a repetition
penalty, say) are switched off by ``extra_body``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import Any

from trustlab.models import base
from trustlab.models.abilities import Abilities, not_default, too_long
from trustlab.models.base import Keep, Messages, Model, Request
from trustlab.models.local.decoding import check
from trustlab.models.server import openai_replies as answers
from trustlab.models.server import openai_wire as wire
from trustlab.models.server.limiter import LONGEST_WAIT_S
from trustlab.models.server.openai_wire import Address, Dialect, Line, Outcome
from trustlab.models.thought import Thinking, check_thinking, unscored, with_thought
from trustlab.records import Reply
from trustlab.stops import Gone, Stopped

TEMPERATURES = ("asked", "default")
LEAST = {
    "max_retries": 0, "max_calls": 0, "max_tokens_total": 0, "n_top": 0, "concurrency": 1,
    "vocabulary_size": 2, "window": 1,
}  # fmt: skip
FATAL = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError, 402: None}
"""HTTP statuses that every further call would get too."""
NOT_THERE = (200, 404, 405)
"""HTTP statuses of a place where no server of this kind is: some answer anything with a page."""
# calls given up in a row, none passing meanwhile, after which a server is gone
GONE_AFTER = 10
MODERATED = re.compile(
    r"flagged|moderat|content.?(policy|filter|management)|safety", re.I
)
"""Words of a refusal (403) that is of one prompt, and not of all."""
LIMITS = ("max_tokens", "max_completion_tokens")
WITHOUT = ("seed", "n", "system")
CURES = {
    "max_tokens": "limit='max_completion_tokens'",
    "temperature": "temperature='default'",
    "response_format": "structured=False",
    "logprobs": "provides without logprobs",
    "top_logprobs": "a smaller n_top",
    "seed": "without=['seed']",
    "n": "without=['n']",
}
"""Part of a call that a server refuses by name -> the option that leaves it out."""
OPTIONS = "one of limit, temperature, n_top, structured, without; with provides none is tried out"
BESIDE = {
    "name", "base_url", "concurrency", "timeout_s", "max_retries", "max_calls", "max_tokens_total",
}  # fmt: skip
"""Options that shape no reply."""
DECIDED = {
    "model", "messages", "temperature", "n", "seed", "max_tokens", "max_completion_tokens",
    "logprobs", "top_logprobs", "prompt_logprobs", "response_format", "stream",
    "add_generation_prompt", "continue_final_message", "max_new_tokens", "max_output_tokens",
    "num_predict", "n_predict", "min_tokens", "ignore_eos", "best_of", "structured_outputs",
    "guided_json", "guided_choice", "guided_regex", "guided_grammar",
    "options", "generation_config", "sampling_params", "parameters",
}  # fmt: skip
"""Parts of a call that a run decides and says of itself, and servers' own groups of options."""
KWARGS = "chat_template_kwargs"
"""Where a call has the options of the server's chat template."""
EFFORT = "reasoning_effort"
"""The option of a template that servers take by itself."""
USAGE = ("requests", "retries", "failures", "n_tokens_in", "n_tokens_out", "probes")

_WANT = frozenset({"logprobs", "distributions"})
_GREEDY = Request(
    (("system", "Be brief."), ("user", "Say: ok")), max_tokens=4, want=_WANT
)
_SAMPLED = replace(_GREEDY, n=2, temperature=1.0, want=frozenset())
_SCHEMA = (
    '{"type": "object", "properties": {"cold": {"type": "boolean"}}, "required": ["cold"],'
    ' "additionalProperties": false}'
)
_QUESTION = "Is ice cold? Reply with one JSON object: cold (true or false)."
_STRUCTURED = Request((("user", _QUESTION),), max_tokens=32, schema=_SCHEMA)
_SCORED_TEXT = "The patient has had a cough for three days"


def _check_values(options: Mapping[str, Any]) -> None:
    """``ValueError`` for an option of :class:`OpenAIModel` that is out of range."""
    for option, least in LEAST.items():
        value = options[option]
        if value is not None and value < least:
            raise ValueError(f"{option} must be at least {least}, got {value}")
    if not options["name"]:
        raise ValueError("name is empty; give the model's name as the server knows it")
    timeout_s = options["timeout_s"]
    if not 0 < timeout_s < math.inf:
        raise ValueError(f"timeout_s must be above 0 and finite, got {timeout_s}")
    for option, allowed in (("temperature", TEMPERATURES), ("limit", LIMITS)):
        value = options[option]
        if value not in allowed:
            raise ValueError(
                f"{option} must be one of {', '.join(allowed)}, got {value!r}"
            )
    several = (("provides", ("text", *base.STATISTICS)), ("without", WITHOUT))
    for option, allowed in several:
        unknown = sorted(set(options[option] or ()).difference(allowed))
        if unknown:
            raise ValueError(
                f"{option} must be among {', '.join(allowed)}, got {unknown}"
            )


def _chat_options(
    extra_body: Mapping[str, Any] | None, template_options: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What goes into every chat call: ``extra_body``, and the template's options at their place."""
    chat_options = dict(extra_body or {})
    of_template = dict(template_options or {})
    if EFFORT in of_template:
        chat_options[EFFORT] = of_template.pop(EFFORT)
    if of_template:
        chat_options[KWARGS] = of_template
    return chat_options


@dataclass
class _Run:
    """Calls that belong together: the requests of one ``generate``, or none, and what has come so
    far. ``stopped``, ``error``: why it stopped, if it did."""

    requests: Sequence[Request] = ()
    rows: Sequence[list[Reply | None]] = ()
    keep: Keep | None = None
    stopped: str = ""
    error: type[Exception] | None = None

    def stop(self, error: type[Exception] | None, why: str) -> None:
        """End it; the first reason stays."""
        if not self.stopped:
            self.error, self.stopped = error, why


class OpenAIModel(Model):
    """A model behind an OpenAI-compatible server, at ``base_url`` (``http://localhost:8000/v1``).

    - ``concurrency``: the most calls at once; fewer where the server refuses them.
    - ``timeout_s``: seconds for a call from beginning to end. A call is tried again ``max_retries``
      times, with growing pauses or as the server says. A refusal for too many calls does not count
      while others get through, and a server that was never reached is tried twice.
    - ``max_calls``, ``max_tokens_total`` (in and out): the budget of this object. Once it is spent,
      :class:`~trustlab.stops.Stopped` hands over the finished replies.
    - ``n_top``: alternatives that are asked for at each position.
    - ``vocabulary_size``: for distances from the uniform distribution.
    - ``window``: tokens of prompt and reply together, where the server does not say.
    - ``temperature``: "default" never sends one, for a model that accepts only its own.
    - ``limit``: what a call names its budget of tokens, "max_completion_tokens" for a model that
      refuses "max_tokens".
    - ``without``: parts of a call that the server does not take: "seed", "n" (replies are asked for
      one by one), "system" (its text is put before the user's).
    - ``template_options``: for the server's chat template (``{"enable_thinking": False}``);
      ``reasoning_effort`` among them is sent by itself.
    - ``structured``: a reply that must be JSON is kept to its schema, where the server does that.
    - ``thinking``: how thought is told from the answer (:mod:`trustlab.models.thought`);
      ``thinking_tokens`` are added to every budget.
    - ``extra_body``: goes into every chat call; it may not contradict what the run says of itself.
    - ``provides``: what the server gives; if set, this is not tried out.

    After 10 calls given up in a row, or where the server asks for a pause of more than 120 s,
    :class:`~trustlab.stops.Gone` hands over the finished replies. Reply i of a request has
    the seed (a hash of the request's seed and messages) + i, alone or in one call with n.
    """

    finds_out = True
    streams = True

    def __init__(  # noqa: PLR0913
        self, name: str, *, base_url: str | None = None, concurrency: int = 32,
        timeout_s: float = 120.0, max_retries: int = 5, max_calls: int | None = None,
        max_tokens_total: int | None = None, n_top: int = 20,
        vocabulary_size: int | None = None, extra_body: Mapping[str, Any] | None = None,
        provides: Iterable[str] | None = None, thinking: Thinking = "auto",
        thinking_tokens: int = 0, template_options: Mapping[str, Any] | None = None,
        temperature: str = "asked", window: int | None = None, structured: bool = False,
        limit: str = "max_tokens", without: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Nothing is sent yet. ``ValueError``: an option out of range, or no address."""
        options = dict(locals())
        self.asked_with: dict[str, Any] = not_default(OpenAIModel, options, BESIDE)
        check_thinking(thinking, thinking_tokens)
        self.check_options(options)
        _check_values(options)
        self.name = name
        self.n_top = n_top
        self.structured = structured
        self.max_calls = max_calls
        self.max_tokens_total = max_tokens_total
        self.thinking = thinking
        self.thinking_tokens = thinking_tokens
        self.vocabulary_size = vocabulary_size
        self.usage: dict[str, float] = dict.fromkeys(USAGE, 0.0)
        self._extra = _chat_options(extra_body, template_options)
        address = Address.of(base_url)
        self._line = Line(address, timeout_s=timeout_s, concurrency=concurrency)
        self._max_retries = max_retries
        self._reached = False
        self._without = set(without)
        if temperature == "default":
            self._without.add("temperature")
        if not structured:
            self._without.add("response_format")
        self._dialect = Dialect(limit, frozenset(self._without))
        self._window = math.inf if window is None else window
        self._prompt_lengths: dict[Messages, int | None] = {}
        if provides is not None:
            self.recall(
                self._abilities_of(frozenset({"text", *provides}), self._window, False)
            )
        hash_of_options = self._hash_of_options(temperature, window, without)
        self.revision = f"{address.shown} {name} {hash_of_options}"

    def _hash_of_options(
        self, temperature: str, window: int | None, without: Sequence[str]
    ) -> str:
        """Eight hex digits of the options that shape replies."""
        shaping: list[Any] = [
            self._extra,
            self.n_top,
            "auto",
            None,
            self.vocabulary_size,
        ]
        if self.thinking != "auto" or self.thinking_tokens:
            shaping += [self.thinking, self.thinking_tokens]
        if temperature != "asked":
            shaping.append(f"temperature {temperature}")
        if self.structured:
            shaping.append("structured")
        if window is not None:
            shaping.append(f"window {window}")
        if without:
            shaping.append(f"without {sorted(without)}")
        return hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[
            :8
        ]

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """``ValueError`` for an ``extra_body`` or ``template_options`` that contradict what the run
        says of itself, or each other."""
        extra = options.get("extra_body") or {}
        template = options.get("template_options") or {}
        for option, value in (("extra_body", extra), ("template_options", template)):
            if not isinstance(value, Mapping):
                raise ValueError(
                    f"{option} is {value!r}; it must be a mapping of names to values"
                )
        names = set(map(str, extra))
        decided = sorted(names & DECIDED)
        if decided:
            raise ValueError(
                f"extra_body has {decided[0]!r}, which the run sets, or may hold what it sets;"
                " allowed is what no parameter names, such as top_k or repetition_penalty"
            )
        twice = sorted(names & {KWARGS, EFFORT})
        if template and twice:
            raise ValueError(
                f"extra_body has {twice[0]!r}, and so have template_options; give one"
            )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, at {self._line.address.shown!r})"

    @property
    def abilities(self) -> Abilities:
        """What the server gives and accepts. Unless ``provides`` says it, at most six small calls
        settle it when it is first read, and it is printed. ``ConnectionError``: the server cannot
        be reached. ``PermissionError``, ``FileNotFoundError``: it refuses the key, or knows no such
        model. ``RuntimeError``: any other failure, with the option that cures it."""
        if self.settled is not None:
            return self.settled
        abilities: Abilities = self._line.run(self._settle())
        self.recall(abilities)
        words = f"{self!r} gives {', '.join(sorted(abilities.provides))}"
        if not math.isinf(abilities.window):
            words += f"; window {abilities.window:,.0f} tokens"
        print(f"{words} ({self.usage['probes']:.0f} calls)", file=sys.stderr)
        return abilities

    def recall(self, abilities: Abilities) -> None:
        """Use what was settled before; what the user told counts more."""
        self.settled = abilities
        takes = {
            "temperature": abilities.temperature,
            "response_format": abilities.structured,
            "n": abilities.several,
        }
        lacking = {part for part, is_taken in takes.items() if not is_taken}
        self._dialect = replace(
            self._dialect, without=frozenset(self._without | lacking)
        )

    def _abilities_of(
        self, provides: frozenset[str], window: float, counts: bool
    ) -> Abilities:
        lacks = answers.reasons_lacking(provides, self.vocabulary_size is not None)
        takes_temperature = "temperature" not in self._without
        return Abilities(provides, lacks, window, counts, takes_temperature)

    @property
    def provides(self) -> frozenset[str]:
        """What the server can give: "text", and which statistics."""
        return self.abilities.provides

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why this server cannot meet it (``"answer.renyi"``, say)."""
        return self.abilities.lacks

    @property
    def window(self) -> float:
        """Tokens that prompt and reply may have together; infinite where nobody says."""
        return self.abilities.window

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt as the server counts them; ``None`` if it does not count."""
        if not self.abilities.counts:
            return None
        return self._line.run(self._count_tokens(messages, _Run()))

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order. A reply that fails after its
        retries is missing, with the reason. ``keep(i, k, replies)`` gets replies ``k`` and on of
        request ``i`` as they arrive, in another thread. :class:`~trustlab.stops.Stopped`
        hands over what is finished when a budget is spent, the server refuses the key or the model
        or is gone, or the user interrupts. ``PermissionError``, ``FileNotFoundError``: refused, and
        nothing is finished. ``ValueError``: an impossible request."""
        for request in requests:
            check(request)
        if not requests:
            return []
        rows: list[list[Reply | None]] = [[None] * request.n for request in requests]
        run = _Run(with_thought(requests, self.thinking_tokens), rows, keep)
        try:
            self._line.run(self._answer_all(run))
        except (KeyboardInterrupt, CancelledError):
            run.stop(None, "interrupted")
        absent = answers.missing(f"not asked: {run.stopped}")
        replies = [
            [absent if reply is None else reply for reply in row] for row in rows
        ]
        if run.stopped:
            raise self._error_of(run, replies)
        return replies

    def _error_of(self, run: _Run, replies: list[list[Reply]]) -> Exception:
        """The error that ends a stopped run: with its replies, unless the server refused it and
        none is finished."""
        n_finished = 0
        for row in replies:
            n_finished += sum(reply.text is not None for reply in row)
        if run.error is not None and run.error is not Gone and not n_finished:
            return run.error(run.stopped)
        larger = " with a larger one" if run.stopped.startswith("the budget") else ""
        finished = f"{n_finished} of {sum(map(len, replies))} replies are finished"
        why = f"{run.stopped}; {finished}; run again{larger} to go on"
        if run.error is Gone:
            return Gone(why, replies)
        return Stopped(why, replies)

    def close(self) -> None:
        """Close the connections. A later call opens them again."""
        self._line.close()

    # What follows runs in the client's thread.

    async def _answer_all(self, run: _Run) -> None:
        """All requests, as places get free."""
        limiter = self._line.limiter
        if not limiter.n_in_use:  # what another run ended with says nothing of this one
            limiter.failed = limiter.refused = 0
        indices = iter(range(len(run.rows)))

        async def work() -> None:
            for i in indices:  # shared: no request waits for another's end
                if not run.stopped:
                    await self._answer(run, i, 0, len(run.rows[i]))

        workers = [asyncio.create_task(work()) for _ in range(self._line.concurrency)]
        try:
            await asyncio.gather(*workers)
        except BaseException:
            run.stop(None, "interrupted")  # no call is begun any more
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _answer(self, run: _Run, i: int, start: int, n: int) -> None:
        """Fill replies ``start`` to ``start + n - 1`` of request ``i``; greedy ones are one."""
        request = await self._within(run, run.requests[i])
        n_drawn = 1 if request.temperature == 0 else n
        if n_drawn > 1 and "n" in self._dialect.without:
            await asyncio.gather(
                *(self._answer(run, i, start + k, 1) for k in range(n))
            )
            return
        replies = await self._draw(run, request, start, n_drawn)
        if replies is None:
            return
        self.usage["failures"] += sum(reply.text is None for reply in replies)
        if n_drawn < n:
            replies = replies * n
        if run.keep is not None:
            run.keep(i, start, replies)
        stop = start + len(replies)
        run.rows[i][start:stop] = replies
        rest = range(stop, start + n)
        await asyncio.gather(*(self._answer(run, i, k, 1) for k in rest))

    async def _draw(
        self, run: _Run, request: Request, start: int, n: int
    ) -> list[Reply] | None:
        """At most ``n`` replies from ``start`` on, in one call, scored where that is wanted;
        ``None``: stopped before."""
        if request.max_tokens < 1:
            replies = [too_long(self.name, self.window)] * n
        else:
            body = wire.chat_body(
                self.name, request, start, n, self.n_top, self._dialect
            )
            outcome = await self._call("chat", body, run)
            if outcome is None:
                return None
            replies = self._read(outcome, request, n)
        prior = request.prior_messages
        if "prior" not in request.want or prior is None:
            return replies
        scored = await asyncio.gather(
            *(self._with_prior(run, prior, r) for r in replies)
        )
        finished = [reply for reply in scored if reply is not None]
        # Stopped before all were scored: better asked again.
        return finished if len(finished) == len(scored) else None

    async def _within(self, run: _Run, request: Request) -> Request:
        """The request with a budget that fits the window; 0 or less where its prompt does not."""
        abilities = self.settled
        if abilities is None or not abilities.counts:
            return request
        if base.most_tokens(request.messages) + request.max_tokens <= abilities.window:
            return request
        n_tokens = await self._count_tokens(request.messages, run)
        if n_tokens is None:
            return request
        room = int(abilities.window) - n_tokens
        return replace(request, max_tokens=min(request.max_tokens, room))

    async def _count_tokens(self, messages: Messages, run: _Run) -> int | None:
        if messages not in self._prompt_lengths:
            outcome = await self._call("tokenize", self._tokens_body(messages), run)
            # another time it may count them
            if outcome is None or outcome.answer is None:
                return None
            self._prompt_lengths[messages] = wire.count_in(outcome.answer)
        return self._prompt_lengths[messages]

    def _tokens_body(self, messages: Messages) -> dict[str, Any]:
        """The call that counts a prompt's tokens."""
        body: dict[str, Any] = {"model": self.name, "add_generation_prompt": True}
        body["messages"] = wire.turns(messages, self._dialect)
        if KWARGS in self._extra:
            body[KWARGS] = self._extra[KWARGS]
        return body

    async def _call(self, kind: str, body: dict[str, Any], run: _Run) -> Outcome | None:
        """One call, tried again where that may help; ``None``: stopped before it. Here alone
        anything is tried again."""
        if kind == "chat":
            body = body | self._extra
        n_retries = 0
        while True:
            outcome = await self._try(kind, body, run, again=n_retries > 0)
            if outcome is None:
                return None
            outcome = replace(outcome, retries=n_retries)
            self._reached = self._reached or outcome.reached
            if kind == "chat":
                self._account_for(run, outcome)
            if outcome.answer is not None:
                return outcome
            if not self._tries_again(run, outcome):
                if outcome.lost:
                    self._count_lost_call(run, outcome)
                if run.stopped:
                    await self._line.limiter.wake()
                return outcome
            n_retries += 1
            if not outcome.is_refusal:  # a refused call waits for its place
                await asyncio.sleep(
                    outcome.pause or min(0.5 * 2 ** (n_retries - 1), 8.0)
                )

    async def _try(
        self, kind: str, body: dict[str, Any], run: _Run, *, again: bool
    ) -> Outcome | None:
        """One call at a place of the limiter's, which then learns how it went; ``None``: stopped
        before it."""
        limiter = self._line.limiter
        start = await limiter.take(lambda: run.stopped)
        if start is None:
            return None
        passed = False
        pause = None
        try:
            spent_budget = self._spent_budget()
            if spent_budget:
                run.stop(None, spent_budget)
            if run.stopped:
                return None
            self.usage["retries" if again else "requests"] += 1
            outcome = await self._line.post(kind, body)
            passed = not outcome.lost
            if outcome.is_refusal:
                pause = outcome.pause if outcome.pause <= LONGEST_WAIT_S else 0.0
            return outcome
        finally:
            await limiter.give(start, passed=passed, pause=pause)

    def _tries_again(self, run: _Run, outcome: Outcome) -> bool:
        """Whether a failed call has another try."""
        if not outcome.may_pass_later or outcome.pause > LONGEST_WAIT_S or run.stopped:
            return False
        most = self._max_retries if self._reached else min(self._max_retries, 1)
        if outcome.retries < most:
            return True
        return outcome.is_refusal and self._line.limiter.refused <= self._max_retries

    def _count_lost_call(self, run: _Run, outcome: Outcome) -> None:
        """Count a call given up; after too many in a row the server is gone."""
        limiter = self._line.limiter
        limiter.failed += 1
        if limiter.failed >= GONE_AFTER:
            why = f"{self._line.address.shown} is gone: {limiter.failed} calls in a row failed"
            run.stop(Gone, f"{why}, the last with {outcome.reason}")

    def _account_for(self, run: _Run, outcome: Outcome) -> None:
        """Count the tokens of a chat call, or, without an answer, stop the run where every further
        call would fail in the same way."""
        status = outcome.status
        shown = self._line.address.shown
        if outcome.answer is not None:
            self._count(run, outcome.answer)
        elif outcome.pause > LONGEST_WAIT_S and outcome.may_pass_later:
            wait = f"{shown} asks to wait {outcome.pause:,.0f} s"
            run.stop(Gone, f"{wait}: {outcome.reason}")
        elif status == 403 and MODERATED.search(outcome.words):
            return
        elif status in FATAL or "insufficient_quota" in outcome.code:
            run.stop(FATAL.get(status or 0), self._words_of_refusal(outcome))

    def _words_of_refusal(self, outcome: Outcome) -> str:
        address = self._line.address
        if outcome.status in NOT_THERE and not re.search(r"/v\d", address.url):
            usual = "the address may lack /v1 (base_url='http://HOST:PORT/v1')"
            return f"{address.shown} does not answer: {outcome.reason}; {usual}"
        return f"{address.shown} refuses {self.name!r}: {outcome.reason}"

    def _spent_budget(self) -> str:
        """Which budget is spent, '' if none."""
        n_calls = self.usage["requests"] + self.usage["retries"]
        if self.max_calls is not None and n_calls >= self.max_calls:
            return f"the budget of {self.max_calls} calls is spent"
        n_tokens = self.usage["n_tokens_in"] + self.usage["n_tokens_out"]
        if self.max_tokens_total is not None and n_tokens >= self.max_tokens_total:
            return f"the budget of {self.max_tokens_total} tokens is spent"
        return ""

    def _count(self, run: _Run, answer: Any) -> None:
        """Add a call's tokens to ``usage``; without them no budget of tokens can be kept to."""
        n_in, n_out = answers.counts_of(answer)
        self.usage["n_tokens_in"] += n_in or 0
        self.usage["n_tokens_out"] += n_out or 0
        if self.max_tokens_total is None:
            return
        if n_in is None or n_out is None:
            run.stop(ValueError, f"{self._line.address.shown} {answers.NO_USAGE}")

    def _read(self, outcome: Outcome, request: Request, n: int) -> list[Reply]:
        """The replies of one call, at most ``n``, each read for itself; a call that failed is as
        many missing ones."""
        answer = outcome.answer
        if answer is None:
            cure = CURES.get(outcome.param)
            hint = f"; the option for it: {cure}" if cure else ""
            return [answers.missing(outcome.reason + hint)] * n
        choices = answers.choices_of(answer)
        if not choices:
            form = "the server sent no choices"
            if choices is None:
                form = "the server's answer has another form"
            words = wire.shortened(self._line.scrubbed(json.dumps(answer)))
            return [answers.missing(f"{form}: {words}")] * n
        n_in, n_out = answers.counts_of(answer)
        if n_out is not None:
            n_out = round(n_out / len(choices))
        model_name = answer.get("model")
        served_by = wire.shortened(model_name) if isinstance(model_name, str) else ""
        replies: list[Reply] = []
        for choice in choices[:n]:
            reply = self._read_choice(choice, request, (n_in, n_out))
            replies.append(replace(reply, served_by=served_by))
        return replies

    def _read_choice(
        self, choice: Any, request: Request, n_tokens: answers.Counts
    ) -> Reply:
        """The reply of one choice, without the key; a missing one where it cannot be read."""
        try:
            reply = answers.reply_of(
                choice,
                request,
                n_tokens,
                self.n_top,
                self.vocabulary_size,
                self.thinking,
            )
        except (
            ValueError,
            TypeError,
            ArithmeticError,
            LookupError,
            RecursionError,
        ) as error:
            words = wire.shortened(f"{type(error).__name__}: {error}")
            reply = answers.missing(f"the server's choice cannot be read: {words}")
        if self._line.echoes(reply.text, reply.raw, reply.reasoning):
            reply = answers.missing(wire.ECHOED)
        if reply.missing:
            reply = replace(reply, missing=self._line.scrubbed(reply.missing))
        return reply

    async def _with_prior(
        self, run: _Run, prior: Messages, reply: Reply
    ) -> Reply | None:
        """The reply with its tokens scored after ``prior``; ``None``: stopped before. One that a
        passing failure kept from being scored carries the reason, so that no cache keeps it."""
        if reply.text is None or reply.trace is None:
            return reply
        if reply.reasoning:
            return replace(reply, trace=unscored(reply.trace))
        body = wire.prior_body(self.name, prior, str(reply.text), self._dialect)
        outcome = await self._call("chat", body, run)
        if outcome is None:
            return None
        why = f"not scored: {outcome.reason}"
        prior_logprobs = None
        if outcome.answer is not None:
            why = answers.OTHER_TOKENS
            prior_logprobs = answers.prior_of(outcome.answer, reply.trace.tokens)
        elif outcome.may_pass_later:
            return replace(reply, missing=why)
        lacks = dict(reply.trace.lacks)
        if prior_logprobs is None:
            lacks["prior_logprobs"] = why
        trace = replace(reply.trace, prior_logprobs=prior_logprobs, lacks=lacks)
        return replace(reply, trace=trace)

    async def _probe(
        self, kind: str, body: dict[str, Any], *, is_needed: bool = False
    ) -> Outcome:
        """What a call brings that settles what the server can do. An error stops all before
        anything is spent: where the call failed in passing, and where its answer is needed."""
        run = _Run()
        self.usage["probes"] += 1
        outcome = await self._call(kind, body, run)
        if run.stopped or outcome is None:
            error = run.error or RuntimeError
            raise error(run.stopped)
        if outcome.answer is not None:
            return outcome
        if outcome.status is None:
            where = f"{self.name!r} cannot be reached at {self._line.address.shown}"
            raise ConnectionError(f"{where}: {outcome.reason}")
        if is_needed or outcome.may_pass_later:
            cure = CURES.get(outcome.param, OPTIONS)
            raise RuntimeError(
                f"{self._words_of_refusal(outcome)}; the option for it: {cure}"
            )
        return outcome

    async def _settle(self) -> Abilities:
        """What the server gives and accepts: a greedy reply with all statistics, the list of
        models, two samples in one call, a reply held to a schema, the score of a text, and the
        length of a prompt."""
        provides = await self._statistics()
        window = self._window
        if math.isinf(window):
            models = await self._probe("models", {})
            window = wire.window_of(models.answer, self.name)
        several = "n" not in self._without and await self._gives_several()
        structured = not self.structured or await self._holds_to_schema()
        if "logprobs" in provides and await self._scores():
            provides.add("prior")
        counts = not math.isinf(window) and await self._counts_tokens()
        abilities = self._abilities_of(frozenset(provides), window, counts)
        return replace(abilities, structured=structured, several=several)

    async def _statistics(self) -> set[str]:
        """What the server gives with a reply; ``RuntimeError``: not even a text."""
        body = wire.chat_body(self.name, _GREEDY, 0, 1, self.n_top, self._dialect)
        outcome = await self._probe("chat", body, is_needed=True)
        choices = answers.choices_of(outcome.answer)
        if not choices:
            (reply,) = self._read(outcome, _GREEDY, 1)
            raise RuntimeError(reply.missing)
        reply_tokens = answers.tokens_in(choices[0])
        provides = {"text"}
        if any(token.logprob is not None for token in reply_tokens):
            provides.add("logprobs")
            if any(token.top_logprobs for token in reply_tokens):
                provides.add("distributions")
        return provides

    async def _gives_several(self) -> bool:
        """Whether the server gives two replies to one call."""
        body = wire.chat_body(self.name, _SAMPLED, 0, 2, 0, self._dialect)
        outcome = await self._probe("chat", body)
        choices = answers.choices_of(outcome.answer) or []
        return len(choices) == 2

    async def _holds_to_schema(self) -> bool:
        """Whether the server takes a schema, and the model's reply is held to it."""
        (request,) = with_thought([_STRUCTURED], self.thinking_tokens)
        body = wire.chat_body(self.name, request, 0, 1, 0, self._dialect)
        outcome = await self._probe("chat", body)
        (reply,) = self._read(outcome, request, 1)
        if reply.finish == "length":  # too long a thought: nothing speaks against it
            return reply.text is not None
        try:
            return isinstance(json.loads(reply.text or "")["cold"], bool)
        except (ValueError, TypeError, KeyError):
            return False

    async def _scores(self) -> bool:
        """Whether the server scores a text that a call brings."""
        body = wire.prior_body(self.name, _GREEDY.messages, _SCORED_TEXT, self._dialect)
        outcome = await self._probe("chat", body)
        texts: list[str] = []
        for token in answers.scored_in(outcome.answer):
            if token.logprob is not None:
                texts.append(token.text)
        last_word = _SCORED_TEXT.split()[-1]
        return len(texts) > 1 and last_word in "".join(texts)

    async def _counts_tokens(self) -> bool:
        """Whether the server counts a prompt's tokens."""
        outcome = await self._probe("tokenize", self._tokens_body(_GREEDY.messages))
        return wire.count_in(outcome.answer) is not None

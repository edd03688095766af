"""Any OpenAI-compatible server: OpenAI itself, vLLM, llama.cpp, Ollama and their like.

Address and key come from ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``. Probabilities are the
server's: at temperature 1 where it says so, as most do; the server's own defaults (a repetition
penalty, say) are switched off by ``extra_body``.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError

from trustlab.models.base import (
    STATISTICS,
    Abilities,
    Gone,
    Keep,
    Messages,
    Request,
    Stopped,
    most_tokens,
    not_default,
    too_long,
)
from trustlab.models.decoding import check
from trustlab.models.limiter import LONGEST_WAIT_S
from trustlab.models.openai_replies import (
    MOST_TOKENS,
    OTHER_TOKENS,
    ChatAnswer,
    PromptAnswer,
    ScoreAnswer,
    missing,
    prior_in_chat,
    prior_of,
    reasons_lacking,
    reply_of,
)
from trustlab.models.openai_wire import (
    Address,
    Dialect,
    Line,
    Outcome,
    Template,
    chat_body,
    prior_body,
    score_body,
    shortened,
    tokenize_body,
    window_of,
)
from trustlab.models.thought import Thinking, check_thinking, unscored, with_thought
from trustlab.records import Reply

SYSTEM_ROLES = ("auto", "system", "developer", "user")
FATAL = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}
"""HTTP statuses that every further call would get too."""
GONE_AFTER = 10
"""Calls given up in a row, none passing meanwhile, after which a server is gone."""

TEMPERATURES = ("asked", "default")
ONLY_DEFAULT = "for a model that takes only its own temperature give temperature='default'"
BESIDE = frozenset(
    {"name", "base_url", "concurrency", "timeout_s", "max_retries", "max_calls", "max_tokens_total"}
)
"""Options that shape no reply."""
SAID = frozenset(
    {"model", "messages", "temperature", "top_p", "n", "seed", "max_tokens", "logprobs", "stream"}
    | {"max_completion_tokens", "top_logprobs", "prompt_logprobs", "response_format"}
    | {"add_generation_prompt", "continue_final_message", "max_new_tokens", "max_output_tokens"}
    | {"num_predict", "n_predict", "min_tokens", "ignore_eos", "best_of"}
    | {"structured_outputs", "guided_json", "guided_choice", "guided_regex", "guided_grammar"}
)
"""Parts of a call that a run decides, and says of itself."""

_PROBE = Request(
    (("user", "Say: ok"),), max_tokens=4, want=frozenset({"logprobs", "distributions"})
)
_TRIED = Request(
    (("user", "Is ice cold? Reply with one JSON object: cold (true or false)."),),
    max_tokens=32,
    schema='{"type": "object", "properties": {"cold": {"type": "boolean"}}, "required": ["cold"],'
    ' "additionalProperties": false}',
)
SCHEMA_FORMS = ("json_schema", "json_object")
"""How a schema is sent: OpenAI's way and vLLM's, then llama-cpp-python's."""
_SCORED = "The patient has had a cough for three days"


def check_extra(extra_body: object, template_options: object) -> None:
    """``ValueError`` for an ``extra_body`` that contradicts what the run says of itself."""
    for called, value in (("extra_body", extra_body), ("template_options", template_options)):
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(f"{called} is {value!r}; it must be a mapping of names to values")
    given = _names_in(extra_body) if isinstance(extra_body, Mapping) else set()
    if wrong := sorted(given & SAID):
        raise ValueError(
            f"extra_body has {wrong[0]!r}, which the run sets, and says of itself; allowed is what"
            " no parameter names, such as top_k or repetition_penalty"
        )
    if template_options and (wrong := sorted(given & {KWARGS, EFFORT})):
        raise ValueError(f"extra_body has {wrong[0]!r}, and so have template_options; give one")


def _otherwise(before: Dialect, learned: Dialect) -> str:
    """What to do where a dialect learned amid a run would ask otherwise than the run says; '' where
    it would not."""
    if learned.coldest > before.coldest or not learned.takes_temperature:
        return ONLY_DEFAULT
    held = before.takes_schema and not learned.takes_schema
    return "without structured=True its JSON is asked for in words" if held else ""


def _names_in(extra_body: Mapping[str, Any]) -> set[str]:
    """The names of what is sent besides, those in servers' own groups of options, too."""
    names = set(map(str, extra_body))
    for group in ("options", "generation_config", "sampling_params", "parameters"):
        value = extra_body.get(group)
        with suppress(ValueError):  # some servers take the group as a text
            value = json.loads(value) if isinstance(value, str) else value
        names |= set(map(str, value)) if isinstance(value, Mapping) else set()
    return names


KWARGS, EFFORT = "chat_template_kwargs", "reasoning_effort"
"""A template's options in a call, and the one that servers take by itself."""


def _for_template(options: Mapping[str, Any]) -> dict[str, Any]:
    """Template options as parts of a call."""
    others = {name: value for name, value in options.items() if name != EFFORT}
    effort = {EFFORT: options[EFFORT]} if EFFORT in options else {}
    return effort | ({KWARGS: others} if others else {})


@dataclass
class _Run:
    """One ``generate``: its requests, what has come so far, and why it stopped, if it did."""

    requests: Sequence[Request]
    rows: list[list[Reply | None]]
    keep: Keep | None
    jobs: asyncio.Queue[tuple[int, int, int] | None] = field(default_factory=asyncio.Queue)
    stopped: str = ""
    error: type[Exception] | None = None

    def replies(self) -> list[list[Reply]]:
        unasked = missing(f"not asked: {self.stopped}")
        return [[unasked if reply is None else reply for reply in row] for row in self.rows]


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    - ``base_url``: such as ``http://localhost:8000/v1``.
    - ``concurrency``: most calls at once, fewer where the server refuses them
      (:class:`~trustlab.models.limiter.Limiter`).
    - ``timeout_s``: a call has so long from beginning to end.
    - ``max_retries``: how often it is tried again, with growing pauses or as the server says; a
      refusal for too many calls does not count while others get through, and a server that was
      never reached is tried twice.
    - ``max_calls``, ``max_tokens_total`` (in and out) bound what this object spends: then no call
      is begun, and :class:`~trustlab.models.base.Stopped` hands over what is finished.
    - ``n_top``: alternatives asked for at each position.
    - ``system_role``: what a system message is sent as; "user" puts it before the first user
      message, which "auto" turns to where the server refuses.
    - ``one_by_one`` never asks for several replies in one call: for servers that give the same one
      several times.
    - ``chat_template``: a Jinja template, or a tokenizer's name or folder, for scoring where the
      server scores no chat; ``vocabulary_size`` for distances from the uniform distribution, which
      a tokenizer tells, too.
    - ``window``: tokens of prompt and reply together, where the server does not tell; a reply's
      budget is fitted to it.
    - ``temperature``: "default" never sends one, for a model that takes no other than its own.
    - ``template_options``: for the server's chat template (``{"enable_thinking": False}``);
      ``reasoning_effort`` among them goes by itself.
    - ``structured``: a reply that shall be JSON is held to its schema (``response_format``), where
      the server does that.
    - ``thinking``: how thought is told from the answer (:mod:`trustlab.models.thought`);
      ``thinking_tokens`` are added to every budget, for a model that thinks.
    - ``extra_body`` goes into every chat call, and may not contradict what the run says of itself.
      ``provides``: what the server gives, where it shall not be tried out.

    After 10 calls given up in a row, or where the server asks for a pause of more than 120 s,
    :class:`~trustlab.models.base.Gone` hands over what is finished.

    Reply i of a request has the seed (a hash of the request's seed and messages) + i, in one call
    with n as alone.
    """

    def __init__(
        self, name: str, *, base_url: str | None = None, concurrency: int = 32,
        timeout_s: float = 120.0, max_retries: int = 5, max_calls: int | None = None,
        max_tokens_total: int | None = None, n_top: int = 20, system_role: str = "auto",
        one_by_one: bool = False, chat_template: str | None = None,
        vocabulary_size: int | None = None, extra_body: Mapping[str, Any] | None = None,
        provides: Iterable[str] | None = None, thinking: Thinking = "auto",
        thinking_tokens: int = 0, template_options: Mapping[str, Any] | None = None,
        temperature: str = "asked", window: int | None = None, structured: bool = False,
    ) -> None:  # fmt: skip
        """Nothing is sent yet. ``ValueError``: an option out of range, no address, no key where one
        is needed."""
        self.asked_with: dict[str, Any] = not_default(OpenAIModel, locals(), BESIDE)
        check_thinking(thinking, thinking_tokens)
        self.check_options({"extra_body": extra_body, "template_options": template_options})
        least = {
            "concurrency": 1,
            "max_retries": 0,
            "max_calls": 0,
            "max_tokens_total": 0,
            "n_top": 0,
            "vocabulary_size": 2,
            "window": 1,
        }
        values = (concurrency, max_retries, max_calls, max_tokens_total, n_top, vocabulary_size)
        values = (*values, window)
        for (option, at_least), value in zip(least.items(), values, strict=True):
            if value is not None and value < at_least:
                raise ValueError(f"{option} must be at least {at_least}, got {value}")
        if not name:
            raise ValueError("name is empty; give the model's name as the server knows it")
        if not 0 < timeout_s < math.inf:
            raise ValueError(f"timeout_s must be above 0 and finite, got {timeout_s}")
        if system_role not in SYSTEM_ROLES:
            raise ValueError(
                f"system_role must be one of {', '.join(SYSTEM_ROLES)}, got {system_role!r}"
            )
        if temperature not in TEMPERATURES:
            raise ValueError(f"temperature must be 'asked' or 'default', got {temperature!r}")
        if unknown := set(provides or ()) - {"text", *STATISTICS}:
            raise ValueError(
                f"provides must be among text, {', '.join(STATISTICS)}, got {sorted(unknown)}"
            )
        self.name, self.max_calls, self.max_tokens_total, self.n_top = (
            name,
            max_calls,
            max_tokens_total,
            n_top,
        )
        options = dict(template_options or {})
        self._extra = {**(extra_body or {}), **_for_template(options)}
        self.usage: dict[str, float] = dict.fromkeys(
            ("requests", "retries", "failures", "n_tokens_in", "n_tokens_out", "probes"), 0.0
        )
        self._template = None if chat_template is None else Template(chat_template, options)
        named = self._template and self._template.n_vocabulary
        self.vocabulary_size = vocabulary_size = vocabulary_size or named
        address = Address.of(base_url)
        self._line = Line(address, timeout_s=timeout_s, concurrency=concurrency)
        self._max_retries, self._concurrency = max_retries, concurrency
        self._reached = False
        self._dialect = Dialect(
            takes_n=not one_by_one, most_top=n_top, system_role=system_role,
            takes_temperature=temperature == "asked", takes_schema=structured,
        )  # fmt: skip
        self._window = math.inf if window is None else window
        self._counted: dict[Messages, int | None] = {}
        self._abilities: Abilities | None = None
        if provides is not None:
            self.abilities = self._able(frozenset({"text", *provides}), self._window, False)
        template = None if self._template is None else self._template.text
        shaping = [self._extra, n_top, system_role, template, vocabulary_size]
        if thinking != "auto" or thinking_tokens:
            shaping += [thinking, thinking_tokens]
        if temperature != "asked":
            shaping += [f"temperature {temperature}"]
        if structured:
            shaping += ["structured"]
        if window is not None:
            shaping += [f"window {window}"]
        self.thinking, self.thinking_tokens = thinking, thinking_tokens
        self.structured = structured
        decisive = json.dumps(shaping, sort_keys=True)
        digest = hashlib.sha256(decisive.encode()).hexdigest()[:8]
        self.revision = f"{address.shown} {name} {digest}"

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """``ValueError`` for options that contradict what a run says of itself, or each other."""
        check_extra(options.get("extra_body"), options.get("template_options"))

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, at {self._line.address.shown!r})"

    @property
    def abilities(self) -> Abilities:
        """What the server gives; found out by some small calls when first read, unless told.

        ``ConnectionError``: it cannot be reached. ``PermissionError``, ``FileNotFoundError``: it
        refuses the key, or knows no such model. ``RuntimeError``: any other failure.
        """
        if self._abilities is None:
            self.abilities = self._line.run(self._probe())
        return cast(Abilities, self._abilities)

    @abilities.setter
    def abilities(self, found: Abilities) -> None:
        """What was found out before."""
        self._abilities = found
        if not found.temperature:
            self._dialect = replace(self._dialect, takes_temperature=False)
        self._dialect = replace(self._dialect, coldest=found.coldest)
        takes = self._dialect.takes_schema and found.structured
        self._dialect = replace(self._dialect, takes_schema=takes, schema_form=found.schema_form)

    def _able(self, provides: frozenset[str], window: float, counts: bool) -> Abilities:
        told = self._template is not None, self.vocabulary_size is not None
        lacks = reasons_lacking(provides, *told)
        takes, coldest = self._dialect.takes_temperature, self._dialect.coldest
        return Abilities(provides, lacks, window, counts, takes, coldest if takes else 0.0)

    @property
    def provides(self) -> frozenset[str]:
        """What it can give: "text", and which statistics."""
        return self.abilities.provides

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why this server cannot meet it (``"answer.renyi"``, say)."""
        return self.abilities.lacks

    @property
    def window(self) -> float:
        """Tokens that prompt and reply may have together; infinite where nobody tells."""
        return self.abilities.window

    def count_tokens(self, messages: Messages) -> int | None:
        """Tokens of a prompt as the server, or the named tokenizer, counts them; ``None``: neither
        does."""
        return self._line.run(self._count_tokens(messages))

    streams = True

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order. What fails after its retries is
        missing, with the reason.

        ``keep(i, k, replies)`` gets replies ``k`` and on of request ``i`` as they come, in another
        thread, before they count as finished. :class:`~trustlab.models.base.Stopped` hands over
        what is finished when a budget is spent, the server refuses the key or the model or is gone,
        or the user interrupts. ``PermissionError``, ``FileNotFoundError``: refused, and nothing is
        finished. ``ValueError``: an impossible request.
        """
        for request in requests:
            check(request)
        if not requests:
            return []
        requests = with_thought(requests, self.thinking_tokens)
        rows: list[list[Reply | None]] = [[None] * request.n for request in requests]
        run = _Run(requests, rows, keep)
        try:
            self._line.run(self._answer_all(run))
        except (KeyboardInterrupt, CancelledError):
            run.stopped = run.stopped or "interrupted"
        replies = run.replies()
        if run.stopped:
            cells = [reply.text is not None for row in replies for reply in row]
            if run.error not in (None, Gone) and not any(cells):
                raise run.error(run.stopped)
            larger = " with a larger one" if run.stopped.startswith("the budget") else ""
            raise (Gone if run.error is Gone else Stopped)(
                f"{run.stopped}; {sum(cells)} of {len(cells)} replies are finished; run again"
                f"{larger} to go on",
                replies,
            )
        return replies

    def close(self) -> None:
        """Give the connections back. A later call opens them anew."""
        self._line.close()

    def __enter__(self) -> OpenAIModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows runs in the client's thread.

    async def _answer_all(self, run: _Run) -> None:
        """All jobs (request, first reply, how many), as places get free: no job waits for another's
        end."""
        limiter = self._line.limiter
        if limiter.idle:  # what another run ended with says nothing of this one
            limiter.failed = limiter.refused = 0
        for i, row in enumerate(run.rows):
            run.jobs.put_nowait((i, 0, len(row)))
        workers = [asyncio.create_task(self._work(run)) for _ in range(self._concurrency)]

        async def end() -> None:
            await run.jobs.join()
            for _ in workers:
                run.jobs.put_nowait(None)

        try:
            await asyncio.gather(end(), *workers)
        except BaseException:
            run.stopped = run.stopped or "interrupted"  # no call is begun any more
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _work(self, run: _Run) -> None:
        while job := await run.jobs.get():
            if not run.stopped:
                await self._answer(run, *job)
            run.jobs.task_done()

    async def _answer(self, run: _Run, i: int, start: int, n: int) -> None:
        """Fill replies ``start`` to ``start + n - 1`` of request ``i``; greedy ones are all the
        same."""
        request = await self._within(run.requests[i])
        asked = 1 if request.temperature == 0 else n
        if asked > 1 and not self._dialect.takes_n:
            for k in range(n):
                run.jobs.put_nowait((i, start + k, 1))
            return
        if request.max_tokens < 1:
            replies = [too_long(self.name, self._room)] * asked
        else:
            body = functools.partial(chat_body, self.name, request, start, asked, self.n_top)
            called = await self._call("chat", body, run)
            if called is None:
                return
            replies = self._read(*called, request, asked)
        if "prior" in request.want and request.prior_messages is not None:
            prior = request.prior_messages
            scored = await asyncio.gather(
                *(self._with_prior(run, prior, reply) for reply in replies)
            )
            replies = [reply for reply in scored if reply is not None]
            if len(replies) < len(scored):  # stopped before all were scored: better asked again
                return
        self.usage["failures"] += sum(reply.text is None for reply in replies)
        if asked < n:
            replies = replies * n
        if run.keep is not None:
            run.keep(i, start, replies)
        run.rows[i][start : start + len(replies)] = replies
        if len(replies) < n:  # the server ignores n
            self._dialect = replace(self._dialect, takes_n=False)
            run.jobs.put_nowait((i, start + len(replies), n - len(replies)))

    @property
    def _room(self) -> float:
        """The window, as far as it is known without a call."""
        return self._window if self._abilities is None else self._abilities.window

    async def _within(self, request: Request) -> Request:
        """The request with a budget that fits the window; 0 or less where its prompt does not."""
        if most_tokens(request.messages) + request.max_tokens <= self._room:
            return request
        if math.isinf(self._room) or (n := await self._count_tokens(request.messages)) is None:
            return request
        return replace(request, max_tokens=min(request.max_tokens, int(self._room) - n))

    async def _count_tokens(self, messages: Messages) -> int | None:
        if messages not in self._counted:
            role = self._dialect.system_role
            n_tokens = self._template.count(messages, role) if self._template else None
            if n_tokens is None and (self._abilities is None or self._abilities.counts):
                body = tokenize_body(self.name, messages, self._dialect) | {
                    name: value for name, value in self._extra.items() if name == KWARGS
                }
                answer = (await self._once("tokenize", body)).answer
                counted = answer.get("count") if isinstance(answer, dict) else None
                n_tokens = counted if type(counted) is int and counted > 0 else None
            self._counted[messages] = n_tokens
        return self._counted[messages]

    async def _once(self, kind: str, body: dict[str, Any]) -> Outcome:
        """One call without a second try, for what one can do without."""
        limiter = self._line.limiter
        taken, passed = await limiter.take(), False
        try:
            outcome = await self._line.post(kind, body)
            passed = outcome.answer is not None or not outcome.passing
            return outcome
        finally:
            await limiter.give(taken, passed=passed, pause=None)

    async def _call(
        self, kind: str, body: Callable[[Dialect], dict[str, Any]], run: _Run | None
    ) -> tuple[Outcome, dict[str, Any]] | None:
        """One call in the server's dialect, learned on the way, and what was sent; ``None``:
        stopped before it."""
        retries = begun = 0
        while True:
            limiter = self._line.limiter
            if run is not None and run.stopped:
                return None
            taken, passed, pause = await limiter.take(), False, None
            try:
                if run is not None:
                    run.stopped = run.stopped or ("" if begun else self._spent())
                    if run.stopped:
                        return None
                sent = body(self._dialect)
                self.usage["requests"] += not begun
                begun = 1
                outcome = await self._line.post(
                    kind, sent | (self._extra if kind == "chat" else {})
                )
                passed = outcome.answer is not None or not outcome.passing
                if outcome.refused:
                    pause = outcome.pause if outcome.pause <= LONGEST_WAIT_S else 0.0
            finally:
                await limiter.give(taken, passed=passed, pause=pause)
            outcome = replace(outcome, retries=retries)
            self._reached = self._reached or outcome.reached
            self._count(outcome)
            if outcome.answer is None:
                if body(self._dialect) == sent:
                    learned = self._dialect.after(sent, outcome)
                    if run is not None and (hint := _otherwise(self._dialect, learned)):
                        self._stop(run, ValueError, f"{self._refused(outcome)}; {hint}")
                        learned = self._dialect
                    self._dialect = learned
                if body(self._dialect) != sent:
                    begun = 0
                    continue
                if run is not None and (kind == "chat" or outcome.status != 404):
                    self._give_up(run, outcome)
                hopeless = outcome.pause > LONGEST_WAIT_S or (run is not None and run.stopped)
                most = self._max_retries if self._reached else min(self._max_retries, 1)
                tried = retries >= most and not (
                    outcome.refused and limiter.refused <= self._max_retries
                )
                if outcome.passing and not tried and not hopeless:
                    retries += 1
                    self.usage["retries"] += 1
                    if not outcome.refused:  # a refused call waits for its place
                        await asyncio.sleep(outcome.pause or min(0.5 * 2 ** (retries - 1), 8.0))
                    continue
                if outcome.passing and run is not None:
                    self._miss(run, outcome)
            return outcome, sent

    def _miss(self, run: _Run, outcome: Outcome) -> None:
        """Count a call given up; after too many in a row the server is gone."""
        limiter = self._line.limiter
        limiter.failed += 1
        if limiter.failed >= GONE_AFTER:
            gone = f"{self._line.address.shown} is gone: {limiter.failed} calls in a row failed"
            self._stop(run, Gone, f"{gone}, the last with {outcome.reason}")

    @staticmethod
    def _stop(run: _Run, error: type[Exception] | None, why: str) -> None:
        """End the run; the first reason stays."""
        if not run.stopped:
            run.error, run.stopped = error, why

    def _spent(self) -> str:
        """Which budget is spent, '' if none."""
        used = {
            "calls": self.usage["requests"],
            "tokens": self.usage["n_tokens_in"] + self.usage["n_tokens_out"],
        }
        for what, most in (("calls", self.max_calls), ("tokens", self.max_tokens_total)):
            if most is not None and used[what] >= most:
                return f"the budget of {most} {what} is spent"
        return ""

    def _count(self, outcome: Outcome) -> None:
        """Add a call to ``usage``; a server's fingerprint is a name there, counted."""
        answer = outcome.answer if isinstance(outcome.answer, dict) else {}
        counted = answer.get("usage")
        for ours, theirs in (
            ("n_tokens_in", "prompt_tokens"),
            ("n_tokens_out", "completion_tokens"),
        ):
            n = counted.get(theirs) if isinstance(counted, dict) else None
            self.usage[ours] += n if isinstance(n, int) and 0 < n <= MOST_TOKENS else 0
        if isinstance(fingerprint := answer.get("system_fingerprint"), str):
            name = f"fingerprint {shortened(fingerprint)[:40]}"
            self.usage[name] = self.usage.get(name, 0.0) + 1

    def _give_up(self, run: _Run, outcome: Outcome) -> None:
        """Stop the run where every further call would fail in the same way."""
        shown = self._line.address.shown
        if outcome.pause > LONGEST_WAIT_S and outcome.passing:
            error = Gone
            stopped = f"{shown} asks to wait {outcome.pause:,.0f} s: {outcome.reason}"
        elif outcome.status in FATAL:
            error, stopped = FATAL[outcome.status], self._refused(outcome)
        elif outcome.status == 402 or outcome.code == "insufficient_quota":
            error, stopped = None, self._refused(outcome)
        else:
            return
        self._stop(run, error, stopped)

    def _refused(self, outcome: Outcome) -> str:
        return f"{self._line.address.shown} refuses {self.name!r}: {outcome.reason}"

    def _read(
        self, outcome: Outcome, sent: dict[str, Any], request: Request, asked: int
    ) -> list[Reply]:
        """The replies of one call, at most ``asked``; a call that failed is as many missing
        ones."""
        if outcome.answer is None:
            return [missing(outcome.reason)] * asked
        try:
            answer = ChatAnswer.model_validate(outcome.answer)
        except ValidationError:
            words = self._line.scrubbed(json.dumps(outcome.answer))
            return [missing(f"the server's answer has another form: {shortened(words)}")] * asked
        if not answer.choices:
            return [missing("the server sent no choices")] * asked
        n_in = (answer.usage.prompt_tokens or 0) if answer.usage else 0
        n_out = (
            round((answer.usage.completion_tokens or 0) / len(answer.choices))
            if answer.usage
            else 0
        )
        n_top = sent.get("top_logprobs", 0)
        replies = [
            reply_of(c, request, (n_in, n_out), n_top, self.vocabulary_size, self.thinking)
            for c in answer.choices[:asked]
        ]
        return [replace(reply, served_by=shortened(answer.model or "")) for reply in replies]

    async def _with_prior(self, run: _Run, prior: Messages, reply: Reply) -> Reply | None:
        """The reply with its tokens scored after ``prior``, in the template that was given or else
        the server's own; ``None``: stopped before.

        A reply that a passing failure kept from being scored can be used, and carries the reason,
        so that no cache keeps it.
        """
        if reply.text is None or reply.trace is None:
            return reply
        if reply.reasoning:
            return replace(reply, trace=unscored(reply.trace))
        template, text = self._template, str(reply.text)
        if template is None:
            called = await self._call(
                "chat", lambda dialect: prior_body(self.name, prior, text, dialect), run
            )
        else:
            prompt = template.render(prior, self._dialect.system_role)
            called = await self._call("score", lambda _: score_body(self.name, prompt + text), run)
        if called is None:
            return None
        outcome = called[0]
        if outcome.answer is None:
            why = f"not scored: {outcome.reason}"
            if outcome.passing:
                return replace(reply, missing=why)
            lacks = {**reply.trace.lacks, "prior_logprobs": why}
            return replace(reply, trace=replace(reply.trace, lacks=lacks))
        tokens = reply.trace.tokens
        try:
            if template is None:
                scored = prior_in_chat(PromptAnswer.model_validate(outcome.answer), tokens)
            else:
                scored = prior_of(ScoreAnswer.model_validate(outcome.answer), tokens)
        except ValidationError:
            scored = None
        lacks = {} if scored is not None else {"prior_logprobs": OTHER_TOKENS}
        trace = replace(reply.trace, prior_logprobs=scored, lacks={**reply.trace.lacks, **lacks})
        return replace(reply, trace=trace)

    async def _probe(self) -> Abilities:
        """Ask one short question for log-probabilities, and where that brings some for the score of
        a text; then what the server says of its window, and of the length of a prompt."""

        def body(dialect: Dialect) -> dict[str, Any]:
            full = chat_body(self.name, _PROBE, 0, 1, self.n_top, dialect)
            return {name: value for name, value in full.items() if name != "seed"}

        self.usage["probes"] += 1
        outcome, _ = await self._call("chat", body, None) or (Outcome(), {})
        if outcome.answer is None:
            if outcome.status is None:
                raise ConnectionError(
                    f"{self.name!r} cannot be reached at {self._line.address.shown}:"
                    f" {outcome.reason}"
                )
            raise FATAL.get(outcome.status, RuntimeError)(self._refused(outcome))
        provides = {"text"}
        try:
            choices = ChatAnswer.model_validate(outcome.answer).choices
        except ValidationError:
            choices = []
        logprobs = choices[0].logprobs if choices else None
        said = logprobs.content if logprobs is not None else None
        if said and any(s.logprob is not None for s in said):
            provides |= (
                {"logprobs", "distributions"} if any(s.top_logprobs for s in said) else {"logprobs"}
            )
        if "logprobs" in provides and await self._scores():
            provides |= {"prior"}
        window, counts = self._window, False
        if math.isinf(window):
            window = window_of((await self._once("models", {})).answer, self.name)
        if not math.isinf(window):
            counts = await self._count_tokens(_PROBE.messages) is not None
        able = self._able(frozenset(provides), window, counts)
        for form in SCHEMA_FORMS if self.structured else ():
            if await self._holds_to_schema(form):
                return replace(able, schema_form=form)
        return replace(able, structured=not self.structured)

    async def _holds_to_schema(self, form: str) -> bool:
        """Whether the server takes a schema in this form, and what it says is held to it."""
        self.usage["probes"] += 1
        (asked,) = with_thought([_TRIED], self.thinking_tokens)

        def body(dialect: Dialect) -> dict[str, Any]:
            tried = replace(dialect, takes_schema=True, schema_form=form)
            return chat_body(self.name, asked, 0, 1, 0, tried)

        outcome, sent = await self._call("chat", body, None) or (Outcome(), {})
        reply = self._read(outcome, sent, asked, 1)[0]
        if reply.finish == "length":  # too long a thought: nothing speaks against it
            return reply.text is not None
        try:
            return isinstance(json.loads(reply.text or "")["cold"], bool)
        except (ValueError, TypeError, KeyError):
            return False

    async def _scores(self) -> bool:
        """Whether the server scores a given text."""
        self.usage["probes"] += 1
        if self._template is None:
            asked = prior_body(self.name, _PROBE.messages, _SCORED, self._dialect)
            answer = (await self._once("chat", asked | self._extra)).answer
            try:
                found = PromptAnswer.model_validate(answer).prompt_logprobs[-1:]
            except ValidationError:
                return False
            ends = [told.decoded_token or "" for row in found if row for told in row.values()]
            return bool(ends) and _SCORED.endswith(ends[0].strip() or "\0")
        outcome, _ = await self._call(
            "score", lambda dialect: score_body(self.name, _SCORED), None
        ) or (Outcome(), {})
        try:
            scored = ScoreAnswer.model_validate(outcome.answer).choices[0].logprobs
        except (ValidationError, IndexError):
            return False
        told = [value for value in scored.token_logprobs[1:] if value is not None]
        return _SCORED.split()[-1] in "".join(scored.tokens) and len(told) > 1

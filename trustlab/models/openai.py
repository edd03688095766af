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
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from trustlab.models.base import STATISTICS, Gone, Keep, Request, Stopped
from trustlab.models.decoding import check
from trustlab.models.limiter import LONGEST_WAIT_S
from trustlab.models.openai_wire import (
    MOST_TOKENS,
    NO_TEMPLATE,
    OTHER_TOKENS,
    Address,
    ChatAnswer,
    Dialect,
    Line,
    Outcome,
    ScoreAnswer,
    Template,
    chat_body,
    missing,
    prior_of,
    reasons_lacking,
    reply_of,
    score_body,
    shortened,
)
from trustlab.models.thought import Thinking, check_thinking, with_thought
from trustlab.records import Reply

SYSTEM_ROLES = ("auto", "system", "developer", "user")
FATAL = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}
"""HTTP statuses that every further call would get too."""
GONE_AFTER = 10
"""Calls given up in a row, none passing meanwhile, after which a server is gone."""

_PROBE = Request(
    (("user", "Say: ok"),), max_tokens=4, want=frozenset({"logprobs", "distributions"})
)
_SCORED = "The patient has had a cough for three days"


@dataclass
class _Run:
    """One ``generate``: its requests, what has come so far, and why it stopped, if it did."""

    requests: Sequence[Request]
    priors: Sequence[str | None]  # the text under which each request's replies are scored
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
      refusal for too many calls does not count while others get through.
    - ``max_calls``, ``max_tokens_total`` (in and out) bound what this object spends: then no call
      is begun, and :class:`~trustlab.models.base.Stopped` hands over what is finished.
    - ``n_top``: alternatives asked for at each position.
    - ``system_role``: what a system message is sent as; "user" puts it before the first user
      message, which "auto" turns to where the server refuses.
    - ``one_by_one`` never asks for several replies in one call: for servers that give the same one
      several times.
    - ``chat_template``: a Jinja template, or a tokenizer's name or folder, for scoring;
      ``vocabulary_size`` for distances from the uniform distribution.
    - ``thinking``: how thought is told from the answer (:mod:`trustlab.models.thought`);
      ``thinking_tokens`` are added to every budget, for a model that thinks.
    - ``extra_body`` goes into every chat call. ``provides``: what the server gives, where it shall
      not be tried out.

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
        thinking_tokens: int = 0,
    ) -> None:  # fmt: skip
        """Nothing is sent yet. ``ValueError``: an option out of range, no address, no key where one
        is needed."""
        check_thinking(thinking, thinking_tokens)
        least = {
            "concurrency": 1,
            "max_retries": 0,
            "max_calls": 0,
            "max_tokens_total": 0,
            "n_top": 0,
            "vocabulary_size": 2,
        }
        values = (concurrency, max_retries, max_calls, max_tokens_total, n_top, vocabulary_size)
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
        self.vocabulary_size, self._extra = vocabulary_size, dict(extra_body or {})
        self.usage: dict[str, float] = dict.fromkeys(
            ("requests", "retries", "failures", "n_tokens_in", "n_tokens_out", "probes"), 0.0
        )
        self._template = None if chat_template is None else Template(chat_template)
        address = Address.of(base_url)
        self._line = Line(address, timeout_s=timeout_s, concurrency=concurrency)
        self._max_retries, self._concurrency = max_retries, concurrency
        self._dialect = Dialect(takes_n=not one_by_one, most_top=n_top, system_role=system_role)
        self._provides = None if provides is None else frozenset({"text", *provides})
        template = None if self._template is None else self._template.text
        shaping = [self._extra, n_top, system_role, template, vocabulary_size]
        if thinking != "auto" or thinking_tokens:
            shaping += [thinking, thinking_tokens]
        self._thinking, self._thinking_tokens = thinking, thinking_tokens
        decisive = json.dumps(shaping, sort_keys=True)
        digest = hashlib.sha256(decisive.encode()).hexdigest()[:8]
        self.revision = f"{address.shown} {name} {digest}"

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, at {self._line.address.shown!r})"

    @property
    def provides(self) -> frozenset[str]:
        """What the server gives; found out by one or two small calls when first read, unless told.

        ``ConnectionError``: it cannot be reached. ``PermissionError``, ``FileNotFoundError``: it
        refuses the key, or knows no such model. ``RuntimeError``: any other failure.
        """
        self._provides = self._provides or self._line.run(self._probe())
        return self._provides

    @property
    def lacks(self) -> Mapping[str, str]:
        """Need -> why this server cannot meet it (``"answer.renyi"``, say)."""
        return reasons_lacking(
            self.provides, self._template is not None, self.vocabulary_size is not None
        )

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
        requests = with_thought(requests, self._thinking_tokens)
        rows: list[list[Reply | None]] = [[None] * request.n for request in requests]
        run = _Run(requests, self._priors(requests), rows, keep)
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

    def _priors(self, requests: Sequence[Request]) -> list[str | None]:
        """The rendered prior prompt of each request that wants one. ``ValueError`` without a
        template that takes it."""
        asked = {
            q.prior_messages: ""
            for q in requests
            if "prior" in q.want and q.prior_messages is not None
        }
        if asked and self._template is None:
            raise ValueError(f"prior is wanted, but {NO_TEMPLATE}")
        role = self._dialect.system_role
        rendered = (
            {messages: self._template.render(messages, role) for messages in asked}
            if self._template
            else {}
        )
        return [
            rendered.get(q.prior_messages) if "prior" in q.want and q.prior_messages else None
            for q in requests
        ]

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
        request = run.requests[i]
        asked = 1 if request.temperature == 0 else n
        if asked > 1 and not self._dialect.takes_n:
            for k in range(n):
                run.jobs.put_nowait((i, start + k, 1))
            return
        body = functools.partial(chat_body, self.name, request, start, asked, self.n_top)
        called = await self._call("chat", body, run)
        if called is None:
            return
        replies = self._read(*called, request, asked)
        if (prompt := run.priors[i]) is not None:
            scored = await asyncio.gather(
                *(self._with_prior(run, prompt, reply) for reply in replies)
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
            self._count(outcome)
            if outcome.answer is None:
                if body(self._dialect) == sent:
                    self._dialect = self._dialect.after(sent, outcome)
                if body(self._dialect) != sent:
                    begun = 0
                    continue
                if run is not None and (kind == "chat" or outcome.status != 404):
                    self._give_up(run, outcome)
                hopeless = outcome.pause > LONGEST_WAIT_S or (run is not None and run.stopped)
                tried = retries >= self._max_retries and not (
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
        if limiter.failed >= GONE_AFTER and not run.stopped:
            run.error = Gone
            run.stopped = (
                f"{self._line.address.shown} is gone: {limiter.failed} calls in a row failed, the"
                f" last with {outcome.reason}"
            )

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
        if not run.stopped:
            run.error, run.stopped = error, stopped

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
            reply_of(c, request, (n_in, n_out), n_top, self.vocabulary_size, self._thinking)
            for c in answer.choices[:asked]
        ]
        return [replace(reply, served_by=shortened(answer.model or "")) for reply in replies]

    async def _with_prior(self, run: _Run, prompt: str, reply: Reply) -> Reply | None:
        """The reply with its tokens scored after ``prompt``; ``None``: stopped before.

        A reply that a passing failure kept from being scored can be used, and carries the reason,
        so that no cache keeps it.
        """
        if reply.text is None or reply.trace is None:
            return reply
        called = await self._call(
            "score", lambda dialect: score_body(self.name, prompt + str(reply.text)), run
        )
        if called is None:
            return None
        outcome = called[0]
        if outcome.answer is None:
            why = f"not scored: {outcome.reason}"
            return replace(reply, missing=why) if outcome.passing else reply
        try:
            prior = prior_of(ScoreAnswer.model_validate(outcome.answer), reply.trace.tokens)
        except ValidationError:
            prior = None
        lacks = {} if prior is not None else {"prior_logprobs": OTHER_TOKENS}
        trace = replace(reply.trace, prior_logprobs=prior, lacks={**reply.trace.lacks, **lacks})
        return replace(reply, trace=trace)

    async def _probe(self) -> frozenset[str]:
        """Ask one short question for log-probabilities, and where there is a template for the score
        of a text."""

        def body(dialect: Dialect) -> dict[str, Any]:
            full = chat_body(self.name, _PROBE, 0, 1, self.n_top, dialect)
            return {
                name: value for name, value in full.items() if name not in ("temperature", "seed")
            }

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
        if "logprobs" in provides and self._template is not None and await self._scores():
            provides |= {"prior"}
        return frozenset(provides)

    async def _scores(self) -> bool:
        """Whether the server scores a given text."""
        self.usage["probes"] += 1
        outcome, _ = await self._call(
            "score", lambda dialect: score_body(self.name, _SCORED), None
        ) or (Outcome(), {})
        try:
            scored = ScoreAnswer.model_validate(outcome.answer).choices[0].logprobs
        except (ValidationError, IndexError):
            return False
        told = [value for value in scored.token_logprobs[1:] if value is not None]
        return _SCORED.split()[-1] in "".join(scored.tokens) and len(told) > 1

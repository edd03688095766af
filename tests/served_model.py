"""Any of trustlab's models behind an OpenAI-compatible server on the loopback interface: what a
user's own server would do."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from openai_server import Server

from trustlab.models.base import Model, Request
from trustlab.records import Reply

MOST_TOP = 20


@dataclass
class ServedModel(Server):
    """``model`` behind the server; one request at a time, with each token's log-probability and the
    likeliest alternatives."""

    model: Model | None = None
    busy: threading.Lock = field(default_factory=threading.Lock)

    def chat(self, body: dict, action: str | None) -> dict:
        """The model's replies to a chat call."""
        assert self.model is not None
        messages = tuple((m["role"], m["content"]) for m in body["messages"])
        request = Request(
            messages,
            n=body.get("n", 1),
            temperature=body.get("temperature", 1.0),
            max_tokens=body[self.limit],
            seed=body.get("seed") or 0,
            want=frozenset({"logprobs", "distributions"}) & self.model.provides,
            n_alternatives=MOST_TOP,
        )
        with self.busy:
            ((*replies,),) = self.model.generate([request])
        return {
            "object": "chat.completion",
            "choices": [_choice(i, reply) for i, reply in enumerate(replies)],
            "usage": {
                "prompt_tokens": replies[0].n_tokens_in,
                "completion_tokens": sum(r.n_tokens_out for r in replies),
            },
        }


def _choice(index: int, reply: Reply) -> dict:
    trace, told = reply.trace, None
    if trace is not None and trace.logprobs is not None and trace.alternatives is not None:
        rows = zip(trace.tokens, trace.logprobs, trace.alternatives, strict=True)
        told = {
            "content": [
                _token(t, float(p)) | {"top_logprobs": [_token(*a) for a in others]}
                for t, p, others in rows
            ]
        }
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    return {"index": index, "message": message, "finish_reason": reply.finish, "logprobs": told}


def _token(text: str, logprob: float) -> dict:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

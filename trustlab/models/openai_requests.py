"""What is sent to an OpenAI-compatible server: a conversation as turns, or as the one text that a chat template makes of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from trustlab.models.base import Messages, Request
from trustlab.models.openai_client import Dialect


def seed_of(request: Request, index: int) -> int:
    """The seed of reply ``index``, below 2^31: a hash of the request's seed and messages, plus the index.

    Servers that draw several replies in one call give reply i the seed + i (vLLM does), so alone or together it is the same.
    """
    digest = hashlib.sha256(json.dumps([request.seed, request.messages]).encode()).digest()
    return (int.from_bytes(digest[:4], "little") + request.first + index) % 2**31


def chat_body(name: str, request: Request, start: int, n: int, n_top: int, dialect: Dialect) -> dict[str, Any]:
    """The call for replies ``start`` to ``start + n - 1``, in the server's dialect; ``n_top`` alternatives where wanted."""
    body: dict[str, Any] = {
        "model": name, "messages": turns(request.messages, dialect.system_role), dialect.limit: request.max_tokens,
        "temperature": request.temperature,
    }  # fmt: skip
    if request.temperature > 0 and dialect.takes_top_p:
        body["top_p"] = 1.0  # some servers cut the distribution unless told
    if dialect.takes_seed:
        body["seed"] = seed_of(request, start)
    if n > 1 and dialect.takes_n:
        body["n"] = n
    if request.want and dialect.takes_logprobs:
        wished = max(n_top, request.n_alternatives) if "distributions" in request.want else 0
        body |= {"logprobs": True, "top_logprobs": max(min(wished, dialect.most_top), dialect.fewest_top)}
    return body


def score_body(name: str, text: str) -> dict[str, Any]:
    """The call that scores ``text``. One token more is made: asked for none, some servers refuse and some never end."""
    return {"model": name, "prompt": text, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}


def turns(messages: Messages, system_role: str) -> list[dict[str, str]]:
    """The conversation as dictionaries; system messages get ``system_role``, "user" puts them before the next user message."""
    if system_role != "user":
        role_of = {"system": "system" if system_role == "auto" else system_role}
        return [{"role": role_of.get(role, role), "content": content} for role, content in messages]
    told: list[dict[str, str]] = []
    waiting: list[str] = []
    for role, content in messages:
        if role == "system":
            waiting.append(content)
        elif role == "user":
            told.append({"role": "user", "content": "\n\n".join([*waiting, content])})
            waiting = []
        else:
            told.append({"role": role, "content": content})
    return told + ([{"role": "user", "content": "\n\n".join(waiting)}] if waiting else [])


class Template:
    """A chat template: a Jinja text, or the name or folder of a tokenizer that has one.

    ``text`` is the Jinja text. ``FileNotFoundError``: no such tokenizer. ``ValueError``: it has no template, or a broken one.
    """

    def __init__(self, source: str) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise ImportError("chat_template needs transformers: pip install transformers") from error
        self._tokenizer: Any = None
        self.text = source
        if "{{" not in source and "{%" not in source:
            try:
                self._tokenizer = AutoTokenizer.from_pretrained(source)
            except (OSError, ValueError) as error:
                reason = (str(error).splitlines() or [""])[0]
                raise FileNotFoundError(
                    f"chat_template {source!r} is neither a Jinja template nor a tokenizer: {reason}"
                ) from error
            if not self._tokenizer.chat_template:
                raise ValueError(f"the tokenizer {source!r} has no chat template; give the Jinja text itself")
            self.text = self._tokenizer.get_chat_template()
        self.render((("user", "ok"),), "system")

    def render(self, messages: Messages, system_role: str) -> str:
        """The prompt as text, up to where the reply begins. ``ValueError`` if the template refuses the conversation.

        Without a leading begin-of-text token: a server puts its own before a text.
        """
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        conversation = turns(messages, system_role)
        try:
            if self._tokenizer is not None:
                text = self._tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
                return text.removeprefix(self._tokenizer.bos_token or "")
            rendered = render_jinja_template(
                [conversation], chat_template=self.text, add_generation_prompt=True, bos_token="", eos_token=""
            )
        except TemplateError as error:
            raise ValueError(f"the chat template fails: {error}") from error
        return rendered[0][0]

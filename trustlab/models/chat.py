"""How a conversation becomes the text of a prompt, for tokenizers with a chat template and without."""

from __future__ import annotations

from typing import Any

from trustlab.models.base import Messages


def plain(messages: Messages) -> str:
    """Paragraphs of ``role: content`` with an open assistant's turn at the end: for models without a chat template."""
    return "\n\n".join([*(f"{role}: {content}" for role, content in messages), "assistant:"])


def system_in_user(messages: Messages) -> Messages:
    """System texts put in front of the first user message, a blank line between; a user message of their own if there is none."""
    head = [content for role, content in messages if role == "system"]
    rest = [message for message in messages if message[0] != "system"]
    at = next((i for i, (role, _) in enumerate(rest) if role == "user"), None)
    if head and at is None:
        rest.insert(0, ("user", "\n\n".join(head)))
    elif head and at is not None:
        rest[at] = ("user", "\n\n".join([*head, rest[at][1]]))
    return tuple(rest)


def alternating(messages: Messages) -> Messages:
    """Neighbours of one role joined to one message, a blank line between."""
    joined: list[tuple[str, str]] = []
    for role, content in messages:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, f"{joined[-1][1]}\n\n{content}")
        else:
            joined.append((role, content))
    return tuple(joined)


def defused(tokenizer: Any, messages: Messages) -> Messages:
    """The messages with a space in every special token that somebody wrote out: words like ``</s>`` are text, and end no turn."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {str(t) for t in added.values() if t.special} | set(tokenizer.all_special_tokens)
    longest_first = sorted((t for t in special if len(t.strip()) > 1), key=len, reverse=True)
    out = []
    for role, content in messages:
        for token in longest_first:
            content = content.replace(token, f"{token[0]} {token[1:]}")
        out.append((role, content))
    return tuple(out)


def prompt_text(tokenizer: Any, messages: Messages) -> str:
    """The conversation as ``tokenizer``'s chat template writes it, ready for the assistant's turn; :func:`plain` without one.

    A template that refuses the system role, or leaves its text out, gets it in front of the first user message; one that
    demands alternating roles gets neighbours of one role as one message. Special tokens written out are broken up
    (:func:`defused`). ValueError, with the template's words, if it
    refuses even that.
    """
    messages = defused(tokenizer, messages)
    if not tokenizer.chat_template:
        return plain(messages)
    from jinja2 import TemplateError

    folded = system_in_user(messages)
    refusal: Exception | None = None
    for attempt in dict.fromkeys((messages, alternating(messages), folded, alternating(folded))):
        turns = [{"role": role, "content": content} for role, content in attempt]
        try:
            text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except TemplateError as error:
            refusal = error
            continue
        if all(content.strip() in text for role, content in attempt if role == "system"):
            return text
    roles = [role for role, _ in messages]
    raise ValueError(f"the model's chat template refuses the roles {roles}: {refusal}") from refusal

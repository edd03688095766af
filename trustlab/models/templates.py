"""Fits messages and options to a chat template."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trustlab.models.base import Messages

TODAY = "2024-07-26"  # printed as today's date, so that a prompt is the same tomorrow
GIVEN = {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
"""Names in templates that no option may set."""
CODES = ("%Y", "%y", "%m", "%-m", "%B", "%b", "%d", "%-d", "%j", "%A", "%a", "%H", "%I", "%M", "%S")
"""Parts of a date that templates print."""


def system_in_user(messages: Messages) -> Messages:
    """System texts put in front of the first user message, or as one of their own."""
    head = [content for role, content in messages if role == "system"]
    rest = [message for message in messages if message[0] != "system"]
    first = next((i for i, (role, _) in enumerate(rest) if role == "user"), None)
    if head:
        asked = [] if first is None else [rest.pop(first)[1]]
        rest.insert(first or 0, ("user", "\n\n".join(head + asked)))
    return tuple(rest)


def dated(template: str, options: Mapping[str, Any]) -> str:
    """The template, a fixed day's date where it prints today's: the option ``today``, else
    :data:`TODAY`. ValueError: that is none (YYYY-MM-DD)."""
    told = options.get("today", TODAY)
    try:
        today = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        raise ValueError(f"the template option today is {told!r}; give YYYY-MM-DD") from None
    if "strftime_now" not in template:
        return template
    parts = {code: today.strftime(code.replace("-", "")) for code in CODES}
    parts |= {code: text.lstrip("0") for code, text in parts.items() if "-" in code}
    steps = "".join(f" | replace({code!r}, {text!r})" for code, text in parts.items())
    # The line's end is no part of the text: the block before it takes it away.
    return f"{{% macro strftime_now(form) %}}{{{{ form{steps} }}}}{{% endmacro %}}\n{template}"


def check_options(options: object) -> None:
    """ValueError unless ``options`` (or None) is a mapping of names to values."""
    if options is not None and not isinstance(options, Mapping):
        must = "it must be a mapping of names to values"
        raise ValueError(f"template_options is {options!r}; {must}")


def check_template(template: str | None, options: Mapping[str, Any]) -> None:
    """ValueError for an option that the chat template does not read."""
    if not options:
        return
    if template is None:
        raise ValueError(f"template_options are {sorted(options)}, and there is no chat template")
    dated(template, options)
    from jinja2.meta import find_undeclared_variables
    from transformers.utils.chat_template_utils import _compile_jinja_template

    environment = _compile_jinja_template(template).environment  # knows its tags and functions
    read = find_undeclared_variables(environment.parse(template)) - GIVEN
    read |= {"today"} if "strftime_now" in template else set()
    for name in options.keys() - read:
        allowed = ", ".join(sorted(read)) or "none"
        raise ValueError(f"the chat template has no option {name!r}; allowed: {allowed}")

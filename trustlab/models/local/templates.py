"""Fits messages and options to a chat template."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trustlab.models.base import Messages

TODAY = "2024-07-26"  # printed as today's date, so that a prompt is the same tomorrow
RESERVED = {
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
}
"""Names in templates that no option may set."""


def system_in_user(messages: Messages) -> Messages:
    """The system's text put in front of the user's message behind it."""
    (first_role, system), *rest = messages
    if first_role != "system" or not rest:
        return messages
    (second_role, question), *others = rest
    if second_role != "user":
        return messages
    return (("user", f"{system}\n\n{question}"), *others)


def fix_date(template: str, options: Mapping[str, Any]) -> None:
    """Let the template print a fixed day in place of today: the option ``today``, else
    :data:`TODAY`. ValueError: that is none (YYYY-MM-DD)."""
    date = options.get("today", TODAY)
    try:
        today = datetime.fromisoformat(date)
    except (TypeError, ValueError):
        raise ValueError(
            f"the template option today is {date!r}; give YYYY-MM-DD"
        ) from None
    environment_of(template).globals["strftime_now"] = today.strftime


def environment_of(template: str) -> Any:
    """The environment in which transformers renders a template: its tags and functions."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    return _compile_jinja_template(template).environment


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
        raise ValueError(
            f"template_options are {sorted(options)}, and there is no chat template"
        )
    fix_date(template, options)
    from jinja2.meta import find_undeclared_variables

    syntax = environment_of(template).parse(template)
    readable = find_undeclared_variables(syntax) - RESERVED
    if "strftime_now" in template:
        readable.add("today")
    for name in options.keys() - readable:
        allowed = ", ".join(sorted(readable)) or "none"
        raise ValueError(
            f"the chat template has no option {name!r}; allowed: {allowed}"
        )

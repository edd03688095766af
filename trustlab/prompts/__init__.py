"""Fills the prompts, whose words stand in text files beside it, MedConf's among them.

- ``embedded`` is the wording that our own small models were taught, ``chat`` for every other model,
  with worked examples as earlier turns (``examples.yml``). A folder of one's own replaces files of
  the set that its ``prompts.yml`` names (``set: embedded``; default ``chat``).
- A file has an ``[about]`` part, never sent, a ``[system]`` and a ``[user]`` part. In braces stand
  its slots: ``{answer}`` is a proposed diagnosis, the others (:data:`TAGS`, :data:`OTHER_TAGS`) are
  set between delimiters that cannot occur in them.
- A line that begins with ``@name`` belongs to the prompt only where the option ``name`` is on,
  ``@not name`` only where it is off, ``@a,not b`` where both hold. ``question`` is on where a case
  asks another question than for the disease (``asks``), which then stands in ``{question}``.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from trustlab.files import read_yaml
from trustlab.models.base import Messages, Model, taught_in

FOLDER = Path(__file__).parent
SETS = ("embedded", "chat")
EXAMPLES = "examples.yml"
MOST_EXAMPLES = 4
"""Worked examples before a question, at most."""
TAGS = ("patient", "passages", "profile")
"""Slots about a patient that are set between delimiters of their own name."""
OTHER_TAGS = (
    "truth", "proposed", "question", "reply", "facts", "chart", "plan", "candidates",
)  # fmt: skip
"""Slots of single prompts, set the same way."""
ASKING = (
    "diagnosis", "ce", "cot_ce", "topk_ce", "p_true", "keyword", "profile", "evidence", "doctor",
    "judge",
)  # fmt: skip
"""Prompts of a benchmark; a case's own question needs a place in each (:meth:`Prompts.check`)."""
WITHHELD = "(nothing is known about the patient)"
"""What stands in the patient's place when the prior of an answer is scored."""
_CONDITION = re.compile(r"@((?:not )?[a-z]+(?:,(?:not )?[a-z]+)*) (.*)", re.DOTALL)
_MARK = re.compile("<(/?)(" + "|".join(TAGS + OTHER_TAGS) + ")>")


@dataclass(frozen=True)
class Prompts:
    """A set of prompts, and what a model of it takes.
    ``folders``: of two files of one name the first counts. ``demonstrations``: worked examples
    before each question, 0 to :data:`MOST_EXAMPLES`; ``seed`` draws which, and their order."""

    name: str = "embedded"
    folders: tuple[Path, ...] = (FOLDER / "embedded",)
    demonstrations: int = 0
    seed: int = 0

    @property
    def answer_tokens(self) -> int:
        """Most tokens of an answer: a chat model may say a word more than the name."""
        return 64 if self.name == "embedded" else 128

    @property
    def facts(self) -> dict[str, Any]:
        """What a manifest says of it, with 16 hex digits of a sha256 over its files."""
        files = [self.file(f"{name}.txt") for name in names()]
        files += [self.file(EXAMPLES)] if self.demonstrations else []
        digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
        return {"set": self.name, "demonstrations": self.demonstrations, "sha256": digest}

    def file(self, name: str) -> Path:
        """The file ``name``; ``ValueError`` names the known prompts."""
        found = [file for folder in self.folders if (file := folder / name).is_file()]
        if not found:
            raise ValueError(f"there is no prompt {Path(name).stem!r}; known: {', '.join(names())}")
        return found[0]

    def having(self, demonstrations: int | None, seed: int) -> Prompts:
        """The same with so many worked examples, as far as it has any, drawn by ``seed``."""
        n = self.demonstrations if demonstrations is None else demonstrations
        some = any((folder / EXAMPLES).is_file() for folder in self.folders)
        return replace(self, demonstrations=n if some else 0, seed=seed)

    def render(
        self, name: str, *, options: Collection[str] = (), asks: str = "", **fill: Any
    ) -> Messages:
        """The messages of prompt ``name``, its worked examples first; as :func:`render`."""
        file = self.file(f"{name}.txt")
        if asks:
            options, fill = {*options, "question"}, {**fill, "question": asks}
            if "{question}" not in parts(file)[2]:
                lacks = f"{name}.txt of the prompts {self.name!r} has no {{question}} for it"
                allowed = "prompts='chat', or the data set's option questions='diagnosis'"
                raise ValueError(f"a case asks {asks!r}, and {lacks}; allowed are {allowed}")
        system, user = _rendered(file, options, **fill)
        return (("system", system), *_examples(self, name, frozenset(options)), ("user", user))

    def check(self, questions: Iterable[str]) -> None:
        """``ValueError`` where one of :data:`ASKING` has no place for cases' own questions."""
        asks = next(filter(None, questions), "")
        for name in ASKING if asks else ():
            self.render(name, asks=asks)


EMBEDDED = Prompts()
CHAT = Prompts("chat", (FOLDER / "chat",), 2)
OF_SET = {"embedded": EMBEDDED, "chat": CHAT}


def named(value: str | Path | None) -> Prompts:
    """The set of this name or folder, ``chat`` where ``None``; ``ValueError`` for what is none."""
    if value is None or value in SETS:
        return OF_SET[str(value or "chat")]
    if not (folder := Path(value).expanduser()).is_dir():
        raise ValueError(
            f"prompts is {str(value)!r}; it must be {' or '.join(SETS)}, or a folder of prompts"
        )
    if strange := sorted({f.stem for f in folder.glob("*.txt")} - set(names())):
        raise ValueError(
            f"{folder / strange[0]}.txt is no prompt that there is; known are {', '.join(names())}"
        )
    for file in folder.glob("*.txt"):
        if not all(parts(file)[1:]):
            raise ValueError(f"{file} has no [system] or no [user] part; both are needed")
    base = named(taught_in(folder).get("set"))
    return replace(base, name=folder.name, folders=(folder, *base.folders))


def prompts_of(model: Model) -> Prompts:
    """The set that a model is asked with: what it was given, or taught; else ``chat``."""
    return model.prompts or named(model.taught.get("set"))


@lru_cache(maxsize=128)
def _examples(prompts: Prompts, name: str, options: frozenset[str]) -> Messages:
    """The worked examples of a prompt: right and wrong answers in turn."""
    if not prompts.demonstrations:
        return ()
    drawn = random.Random(f"{prompts.seed} {name}")
    kinds: list[list[Any]] = [[], []]
    for one in read_examples(prompts.file(EXAMPLES)):
        if one.get("asked", False) == ("question" in options):
            kinds[not one["right"]].append(one)
    for kind in (*kinds, kinds):
        drawn.shuffle(kind)
    each = [one for one in chain(*zip_longest(*kinds)) if one][: prompts.demonstrations]
    turns: list[tuple[str, str]] = []
    for one in each:
        fill, reply = worked(name, one, options)
        user = _rendered(prompts.file(f"{name}.txt"), options, **fill)[1]
        turns += [("user", user), ("assistant", reply)]
    return tuple(turns)


@lru_cache(maxsize=8)
def read_examples(file: Path) -> tuple[Mapping[str, Any], ...]:
    """The worked examples of a file."""
    return tuple(read_yaml(file))


def worked(
    name: str, example: Mapping[str, Any], options: Collection[str]
) -> tuple[dict[str, Any], str]:
    """What fills prompt ``name`` in a worked example, and the reply to it."""
    e: Any = example
    criteria = list(enumerate(e["criteria"], 1))
    weighed = ("importance",) if "importance" in options else ()
    rows = [{"id": i, **{k: c[k] for k in (*weighed, "description")}} for i, c in criteria]
    plan = {"prescriptions": e["prescriptions"], "tests": e["tests"]}
    fill = {k: e[k] for k in ("patient", "chart", "passages", "answer", "facts", "question")}
    fill |= {k: e[k] for k in ("reply", "truth", "proposed")}
    fill["candidates"] = "\n".join(e["candidates"])
    fill["profile"] = json_rows(rows) if "structure" in options else e["prose"]
    drugs = [f"{p['drug']}, {p['dose']}, {p['route']}" for p in e["prescriptions"]]
    listed = drugs if name == "review_prescriptions" else e["tests"]
    fill["plan"] = "\n".join(f"{i}. {item}" for i, item in enumerate(listed, 1))
    if name in ("plan", "review_prescriptions", "review_tests"):
        fill["answer"] = e["diagnosis"]
    if name == "rephrase_statement":
        fill["reply"] = e["statement"]
    evidence: dict[str, Any] = {}
    if {"profile", "structure"} <= set(options):
        keys = ("support_level", "evidence")
        evidence["criteria"] = {str(i): {k: c[k] for k in keys} for i, c in criteria}
    score = f"<<{e['score']}>>"
    evidence["confidence"] = {"reasoning": e["reasoning"], "confidence_score": score}
    replies = {
        **dict.fromkeys(("diagnosis", "choice"), f"[{e['diagnosis']}]"),
        "ce": f"[{e['score']}]",
        "cot_ce": f"{e['cot']}\n[{e['score']}]",
        "topk_ce": " ".join(f"G{i}: [{n}]" for i, n in enumerate(e["guesses"], 1)),
        "p_true": str(e["right"]),
        "keyword": f"[{e['keyword']}]",
        "profile": json.dumps(rows) if "structure" in options else e["prose"],
        "evidence": json.dumps(evidence),
        "doctor": f"<thinking_process>{e['thinking']}</thinking_process>\n[{e['diagnosis']}]",
        "plan": json.dumps(plan),
        "review_prescriptions": json.dumps([{"id": i, **m} for i, m in enumerate(e["ratings"], 1)]),
        "review_tests": json.dumps([{"id": i, **m} for i, m in enumerate(e["flags"], 1)]),
        "judge": str(e["right"]),
        **{n: f"[{e[n]}]" for n in ("ask", "enough")},
        "patient": f"[{e['reply']}]",
        **{n: f"[{e[n.replace('rephrase', 'rephrased')]}]" for n in names() if "rephrase" in n},
    }
    return fill, replies[name]


def numbered(items: Iterable[str]) -> str:
    """The items as a prompt shows them: numbered from 1, one a line, white space made single."""
    lines = []
    for number, item in enumerate(items, 1):
        lines.append(f"{number}. {' '.join(item.split())}")
    return "\n".join(lines)


def json_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """A JSON list, an entry a line."""
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def names() -> list[str]:
    """The names of all prompts."""
    return sorted(p.stem for p in (FOLDER / "embedded").glob("*.txt"))


@lru_cache(maxsize=128)
def parts(path: Path) -> tuple[str, str, str]:
    """The (about, system, user) texts of a prompt's file."""
    head, _, user = path.read_text(encoding="utf-8").partition("[user]\n")
    aim, _, system = head.partition("[system]\n")
    return aim.removeprefix("[about]\n").strip(), system.strip(), user.strip()


def render(name: str, *, to: Any = EMBEDDED, **fill: Any) -> Messages:
    """The messages of prompt ``name`` in the set ``to``, or in that of the model ``to``.
    ``options``: those that are on; ``patient=None`` leaves the patient information out (for the
    prior); ``asks``: the case's own question, ``ValueError`` where it has no place; the rest fills
    slots, ``TypeError`` for one that there is not."""
    return (to if isinstance(to, Prompts) else prompts_of(to)).render(name, **fill)


def _rendered(path: Path, options: Collection[str] = (), **fill: str | None) -> tuple[str, str]:
    """The (system, user) texts of a file with its slots filled."""
    known = (*TAGS, "answer", *OTHER_TAGS)
    if strange := ", ".join(sorted(set(fill) - {*known})):
        raise TypeError(f"there is no slot {strange}; there are {', '.join(known)}")
    texts = {tag: fill.get(tag) or "" for tag in TAGS}
    texts |= {tag: fill.get(tag) or "(none)" for tag in OTHER_TAGS}
    if fill.get("patient") is None:
        texts["patient"] = WITHHELD
    held = {tag: f"<{tag}>\n{harmless(text)}\n</{tag}>" for tag, text in texts.items()}
    held["answer"] = " ".join(harmless(fill.get("answer") or "").split())
    slots = re.compile(r"\{(" + "|".join(held) + r")\}")
    system, user = (_chosen(part, options) for part in parts(path)[1:])
    return slots.sub(lambda m: held[m[1]], system), slots.sub(lambda m: held[m[1]], user)


def _chosen(text: str, options: Collection[str]) -> str:
    """The lines of a template that the options leave in."""
    kept = []
    for line in text.split("\n"):
        marked = _CONDITION.fullmatch(line)
        wanted = marked[1].split(",") if marked else ()
        if all((one.removeprefix("not ") in options) != one.startswith("not ") for one in wanted):
            kept.append(marked[2] if marked else line)
    return "\n".join(kept)


def harmless(text: str) -> str:
    """The text without our delimiters: their first character becomes a look-alike."""
    return _MARK.sub(lambda m: "\u2039" + m[0][1:], text)

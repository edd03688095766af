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
SLOTS = (*TAGS, "answer", *OTHER_TAGS)
"""All slots."""
ASKING = (
    "diagnosis", "ce", "cot_ce", "topk_ce", "p_true", "keyword", "profile", "evidence", "doctor",
    "judge",
)  # fmt: skip
"""Prompts of a benchmark; a case's own question needs a place in each (:meth:`Prompts.check`)."""
WITHHELD = "(nothing is known about the patient)"
"""What stands in the patient's place when the prior of an answer is scored."""
_CONDITION = re.compile(r"@((?:not )?[a-z]+(?:,(?:not )?[a-z]+)*) (.*)", re.DOTALL)
_SLOT = re.compile(r"\{(" + "|".join(SLOTS) + r")\}")
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
        if self.demonstrations:
            files.append(self.file(EXAMPLES))
        contents = b"\0".join(file.read_bytes() for file in files)
        digest = hashlib.sha256(contents).hexdigest()[:16]
        return {
            "set": self.name,
            "demonstrations": self.demonstrations,
            "sha256": digest,
        }

    def file(self, name: str) -> Path:
        """The file ``name``; ``ValueError`` names the known prompts."""
        for folder in self.folders:
            file = folder / name
            if file.is_file():
                return file
        raise ValueError(
            f"there is no prompt {Path(name).stem!r}; known: {', '.join(names())}"
        )

    def having(self, demonstrations: int | None, seed: int) -> Prompts:
        """The same with so many worked examples, as far as it has any, drawn by ``seed``."""
        n = self.demonstrations if demonstrations is None else demonstrations
        if not any((folder / EXAMPLES).is_file() for folder in self.folders):
            n = 0
        return replace(self, demonstrations=n, seed=seed)

    def render(
        self, name: str, *, options: Collection[str] = (), asks: str = "", **fill: Any
    ) -> Messages:
        """The messages of prompt ``name``, its worked examples first; as :func:`render`."""
        file = self.file(f"{name}.txt")
        if asks:
            options = {*options, "question"}
            fill["question"] = asks
            if "{question}" not in parts(file)[2]:
                lacks = f"{name}.txt of the prompts {self.name!r} has no {{question}} for it"
                allowed = (
                    "prompts='chat', or the data set's option questions='diagnosis'"
                )
                raise ValueError(
                    f"a case asks {asks!r}, and {lacks}; allowed are {allowed}"
                )
        system, user = _rendered(file, options, **fill)
        examples = _examples(self, name, frozenset(options))
        return (("system", system), *examples, ("user", user))

    def check(self, questions: Iterable[str]) -> None:
        """``ValueError`` where one of :data:`ASKING` has no place for cases' own questions."""
        asks = next(filter(None, questions), "")
        if not asks:
            return
        for name in ASKING:
            self.render(name, asks=asks)


EMBEDDED = Prompts()
CHAT = Prompts("chat", (FOLDER / "chat",), 2)
OF_SET = {"embedded": EMBEDDED, "chat": CHAT}


def named(value: str | Path | None) -> Prompts:
    """The set of this name or folder, ``chat`` where ``None``; ``ValueError`` for what is none."""
    if value is None or value in SETS:
        return OF_SET[str(value or "chat")]
    folder = Path(value).expanduser()
    if not folder.is_dir():
        allowed = f"{' or '.join(SETS)}, or a folder of prompts"
        raise ValueError(f"prompts is {str(value)!r}; it must be {allowed}")
    stems = {file.stem for file in folder.glob("*.txt")}
    strange = sorted(stems.difference(names()))
    if strange:
        no_prompt = f"{folder / strange[0]}.txt is no prompt that there is"
        raise ValueError(f"{no_prompt}; known are {', '.join(names())}")
    for file in folder.glob("*.txt"):
        if not all(parts(file)[1:]):
            raise ValueError(
                f"{file} has no [system] or no [user] part; both are needed"
            )
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
    file = prompts.file(f"{name}.txt")
    turns: list[tuple[str, str]] = []
    for example in _drawn_examples(prompts, name, "question" in options):
        fill, reply = worked(name, example, options)
        _, user = _rendered(file, options, **fill)
        turns += [("user", user), ("assistant", reply)]
    return tuple(turns)


def _drawn_examples(
    prompts: Prompts, name: str, has_question: bool
) -> list[Mapping[str, Any]]:
    """As many worked examples as the prompts take, of those with a question or without."""
    right: list[Mapping[str, Any]] = []
    wrong: list[Mapping[str, Any]] = []
    for example in read_examples(prompts.file(EXAMPLES)):
        if example.get("asked", False) == has_question:
            examples = right if example["right"] else wrong
            examples.append(example)
    rng = random.Random(f"{prompts.seed} {name}")
    rng.shuffle(right)
    rng.shuffle(wrong)
    kinds = [right, wrong]
    rng.shuffle(kinds)
    in_turn = chain.from_iterable(zip_longest(*kinds))
    return list(filter(None, in_turn))[: prompts.demonstrations]


@lru_cache(maxsize=8)
def read_examples(file: Path) -> tuple[Mapping[str, Any], ...]:
    """The worked examples of a file."""
    return tuple(read_yaml(file))


def worked(
    name: str, example: Mapping[str, Any], options: Collection[str]
) -> tuple[dict[str, Any], str]:
    """What fills prompt ``name`` in a worked example, and the reply to it."""
    return _worked_fill(name, example, options), _worked_replies(example, options)[name]


def _worked_fill(
    name: str, example: Mapping[str, Any], options: Collection[str]
) -> dict[str, Any]:
    """What fills prompt ``name`` in a worked example."""
    fill = {
        slot: example[slot]
        for slot in SLOTS
        if slot not in ("candidates", "plan", "profile")
    }
    fill["candidates"] = "\n".join(example["candidates"])
    fill["profile"] = example["prose"]
    if "structure" in options:
        fill["profile"] = json_rows(_criterion_rows(example, options))
    items = example["tests"]
    if name == "review_prescriptions":
        items = [
            f"{p['drug']}, {p['dose']}, {p['route']}" for p in example["prescriptions"]
        ]
    fill["plan"] = "\n".join(f"{i}. {item}" for i, item in enumerate(items, 1))
    if name in ("plan", "review_prescriptions", "review_tests"):
        fill["answer"] = example["diagnosis"]
    if name == "rephrase_statement":
        fill["reply"] = example["statement"]
    return fill


def _criterion_rows(
    example: Mapping[str, Any], options: Collection[str]
) -> list[dict[str, Any]]:
    """The criteria of a worked example as a structured profile lists them."""
    rows = []
    for number, criterion in enumerate(example["criteria"], 1):
        row = {"id": number}
        if "importance" in options:
            row["importance"] = criterion["importance"]
        row["description"] = criterion["description"]
        rows.append(row)
    return rows


def _worked_evidence(
    example: Mapping[str, Any], options: Collection[str]
) -> dict[str, Any]:
    """The evidence table of a worked example, with its criteria where the profile has any."""
    evidence: dict[str, Any] = {}
    if {"profile", "structure"}.issubset(options):
        evidence["criteria"] = {}
        for number, criterion in enumerate(example["criteria"], 1):
            support = {
                "support_level": criterion["support_level"],
                "evidence": criterion["evidence"],
            }
            evidence["criteria"][str(number)] = support
    score = f"<<{example['score']}>>"
    evidence["confidence"] = {
        "reasoning": example["reasoning"],
        "confidence_score": score,
    }
    return evidence


def _worked_replies(
    example: Mapping[str, Any], options: Collection[str]
) -> dict[str, str]:
    """Name of a prompt -> the reply to it in a worked example."""
    in_brackets = {
        "diagnosis": example["diagnosis"],
        "choice": example["diagnosis"],
        "ce": example["score"],
        "keyword": example["keyword"],
        "ask": example["ask"],
        "enough": example["enough"],
        "patient": example["reply"],
    }
    for name in names():
        if "rephrase" in name:
            in_brackets[name] = example[name.replace("rephrase", "rephrased")]
    replies = {name: f"[{text}]" for name, text in in_brackets.items()}
    replies["cot_ce"] = f"{example['cot']}\n{replies['ce']}"
    guesses = [f"G{i}: [{guess}]" for i, guess in enumerate(example["guesses"], 1)]
    replies["topk_ce"] = " ".join(guesses)
    replies["p_true"] = str(example["right"])
    replies["judge"] = str(example["right"])
    replies["profile"] = example["prose"]
    if "structure" in options:
        replies["profile"] = json.dumps(_criterion_rows(example, options))
    replies["evidence"] = json.dumps(_worked_evidence(example, options))
    thinking = f"<thinking_process>{example['thinking']}</thinking_process>"
    replies["doctor"] = f"{thinking}\n{replies['diagnosis']}"
    plan = {"prescriptions": example["prescriptions"], "tests": example["tests"]}
    replies["plan"] = json.dumps(plan)
    replies["review_prescriptions"] = _with_ids(example["ratings"])
    replies["review_tests"] = _with_ids(example["flags"])
    return replies


def _with_ids(marks: Iterable[Mapping[str, Any]]) -> str:
    """The marks of a plan's items as JSON, numbered from 1."""
    return json.dumps([{"id": i, **mark} for i, mark in enumerate(marks, 1)])


def numbered(items: Iterable[str]) -> str:
    """The items as a prompt shows them: numbered from 1, one a line, white space made single."""
    lines = []
    for number, item in enumerate(items, 1):
        lines.append(f"{number}. {' '.join(item.split())}")
    return "\n".join(lines)


def json_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """A JSON list, an entry a line."""
    return (
        "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"
    )


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


def _rendered(
    path: Path, options: Collection[str] = (), **fill: str | None
) -> tuple[str, str]:
    """The (system, user) texts of a file with its slots filled."""
    texts = _slot_texts(fill)
    system, user = (_chosen(part, options) for part in parts(path)[1:])

    def text_of(slot: re.Match[str]) -> str:
        return texts[slot[1]]

    return _SLOT.sub(text_of, system), _SLOT.sub(text_of, user)


def _slot_texts(fill: Mapping[str, str | None]) -> dict[str, str]:
    """Slot -> the text in its place; ``TypeError`` for a slot that there is not."""
    strange = ", ".join(sorted(set(fill).difference(SLOTS)))
    if strange:
        raise TypeError(f"there is no slot {strange}; there are {', '.join(SLOTS)}")
    answer = harmless(fill.get("answer") or "")
    texts = {"answer": " ".join(answer.split())}
    for tag in TAGS:
        texts[tag] = fill.get(tag) or ""
    for tag in OTHER_TAGS:
        texts[tag] = fill.get(tag) or "(none)"
    if fill.get("patient") is None:
        texts["patient"] = WITHHELD
    for tag in TAGS + OTHER_TAGS:
        texts[tag] = f"<{tag}>\n{harmless(texts[tag])}\n</{tag}>"
    return texts


def _chosen(text: str, options: Collection[str]) -> str:
    """The lines of a template that the options leave in."""
    lines = []
    for line in text.split("\n"):
        marked = _CONDITION.fullmatch(line)
        if marked is None:
            lines.append(line)
        elif _holds(marked[1], options):
            lines.append(marked[2])
    return "\n".join(lines)


def _holds(condition: str, options: Collection[str]) -> bool:
    """Whether "a,not b" holds: the options are on and off as it says."""
    for term in condition.split(","):
        option = term.removeprefix("not ")
        is_negated = option != term
        if (option in options) == is_negated:
            return False
    return True


def harmless(text: str) -> str:
    """The text without our delimiters: their first character becomes a look-alike."""
    return _MARK.sub(lambda m: "\u2039" + m[0][1:], text)

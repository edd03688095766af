"""A unigram tokenizer whose vocabulary holds whole phrases, and exchanges as its tokens.

What a patient may answer, a passage's sentence, a line of a prompt, a piece of the JSON replies is
one token each. Whatever else is written falls into words, letters or bytes.

So a patient takes about three tokens a statement, and a quotation is the very token that stands in
the patient's words. Names of conditions are held in pieces of four letters only, so that an answer
has several tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trustlab.prompts import names, render

from .clinic import pieces as clinic_pieces
from .evidence import KEYS, json_pieces
from .manner import words as manner_words
from .passages import keywords, passages
from .replies import Row, reply_pieces
from .speech import HEDGES_AFTER, HEDGES_BEFORE, TURNS, loose_wordings
from .talk import UNKNOWN
from .world import World

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}"
    "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
WINDOW = 1024
PHRASE, PIECE, WORD, LETTER, BYTE = -3.0, -2.0, -12.0, -20.0, -40.0
"""Log-weights that decide the cutting: phrases before words, words before letters."""
OPTIONS = [
    set(),
    {"retrieval"},
    {"importance"},
    {"structure"},
    {"structure", "importance"},
    {"profile", "structure"},
]
OPTIONS += [
    {"profile"},
    {"profile", "structure", "importance"},
    {"retrieval", "structure", "importance"},
]


LINES = re.compile(r"(?=\n)")
"""Where lines are cut: each begins with its line break, as in the tokenizer."""
LEAST = {"embedded-clinic": 3}
"""A word of the wordings is a token if it occurs so often there; twice for the others."""
DECIDES, ENTRY, SUMMED, KEY = 4.0, 1.5, 2.0, 0.3
"""How much tokens of MedConf's evidence weigh: a contradicted criterion's choice of words and its
label; the other criteria's; a summary's ids; its keys, which are learned at once. The rest: 1."""
Soft = list[dict[int, float] | None]
"""For each token of a reply: what could stand there instead, with its exact chance; ``None`` where
the token is certain."""


def prompt_lines(every: Sequence[Collection[str]] = OPTIONS) -> Iterator[str]:
    """Every fixed piece of text of the prompts, cut at their slots; lines begin with their line
    break."""
    for name in (n for n in names() if n != "choice"):  # nothing is written in reply to it
        for options in every:
            for _, text in render(
                name, patient="|", answer="|", passages="|", profile="|", options=options
            ):
                for line in LINES.split(text):
                    yield from line.split("|")


def phrases(world: World) -> Iterator[str]:
    """Whole phrases: the table's, the passages', the prompts' and the replies'."""
    knowledge = world.knowledge
    yield from prompt_lines()
    yield from ["Doctor: ", "\nDoctor: ", "\nPatient: "]
    for f in knowledge.findings.values():
        yield from [f.question, f.name, *f.deny]
        for text in f.affirm:
            yield from text.split("{value}")
    for v in knowledge.values.values():
        yield v.phrase
    for p in passages():
        yield p.title.removeprefix(knowledge.conditions[p.condition].name) + "."
        for s in p.sentences:
            yield " " + s.text
            yield from (c.name for c in s.criteria)
    yield from (f"\n{i}. " for i in range(1, 31))
    yield from (str(i) for i in range(101))
    yield from [", ", " and ", "True", "False", "[", "]", "[]"]
    yield from keywords().values()
    yield from json_pieces()
    yield from reply_pieces()
    yield from [UNKNOWN, "enough", "more"]
    yield from clinic_pieces()


def words(world: World) -> Iterator[str]:
    """Single words as they stand in all phrasings, the loose ones too, with the space before
    them."""
    texts = [t for f in world.knowledge.findings.values() for t in (f.question, *f.affirm, *f.deny)]
    texts += [t for w in loose_wordings().values() for ts in w.values() for t in ts]
    texts += [*TURNS, *HEDGES_BEFORE, *HEDGES_AFTER]
    for text in texts:
        for word in re.findall(r"[A-Za-z]+(?:'[a-z]+)?|[0-9]+", text):
            yield from [" " + word, " " + word.lower(), word[0].upper() + word[1:]]


def vocabulary(
    world: World, whole: Iterable[str], single: Iterable[str]
) -> list[tuple[str, float]]:
    """(token, log-weight), each token once, in a fixed order: names of conditions in pieces, the
    phrases ``whole``, the words ``single``, letters and bytes."""
    weights = dict.fromkeys(SPECIAL, 0.0)
    for c in world.knowledge.conditions.values():
        weights |= {c.name[i : i + 4]: PIECE for i in range(0, len(c.name), 4)}
    for text in whole:
        if text and text not in weights:
            weights[text] = PHRASE
    for word in single:
        weights.setdefault(word, WORD)
    for code in range(32, 127):
        weights.setdefault(chr(code), LETTER)
    weights.setdefault("\n", LETTER)
    return list(weights.items()) + [(f"<0x{b:02X}>", BYTE) for b in range(256)]


def tokenizer_of(name: str, world: World) -> PreTrainedTokenizerFast:
    """A model's tokenizer: the phrases and words of its own skills."""
    clinic = name == "embedded-clinic"
    asked = [t for lists in loose_wordings().values() for t in lists.get("ask", ())]
    left_out = set(json_pieces()) | set(reply_pieces()) if clinic else set(clinic_pieces())
    left_out -= set(clinic_pieces() if clinic else (*json_pieces(), *reply_pieces()))
    if clinic:
        left_out |= {f" {s.text}" for p in passages() for s in p.sentences}
    whole = [*phrases(world), *prompt_lines([{"complete"}]), *(asked if clinic else [])]
    single = [*(words(world) if clinic else []), *manner_words(LEAST.get(name, 2))]
    return build_tokenizer(vocabulary(world, [t for t in whole if t not in left_out], single))


def build_tokenizer(tokens: list[tuple[str, float]]) -> PreTrainedTokenizerFast:
    """Wrap a vocabulary as a Hugging Face tokenizer with its chat template."""
    tok = Tokenizer(models.Unigram(tokens, unk_id=0, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n"), "merged_with_next")
    tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tok,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=WINDOW,
        padding_side="left",
    )
    fast.chat_template = TEMPLATE
    return fast


@dataclass(frozen=True)
class Ids:
    """A row as tokens: ``scores`` (place in the reply, posterior), ``weights`` of the reply's
    tokens where they differ."""

    prompt: list[int]
    reply: list[int]
    soft: Soft
    scores: list[tuple[int, float]] = field(default_factory=list)
    weights: list[float] | None = None

    def __len__(self) -> int:
        return min(-(-(len(self.prompt) + len(self.reply)) // 8) * 8, WINDOW)


class Tokens:
    """Rows to token ids, remembering the lines it has met (no token reaches over a line's
    beginning)."""

    def __init__(self, tokenizer: Any, world: World) -> None:
        self.tokenizer, self.known = tokenizer, {}
        self.answers = [
            [*self.line(f"[{c.name}]"), tokenizer.eos_token_id] for c in world.conditions
        ]
        self.verdicts = [self.line(word)[0] for word in ("True", "False")]
        self.numbers = [self.line(str(i))[0] for i in range(101)]
        self.fixed = {i for piece in KEYS for i in self.line(piece)}

    def line(self, text: str) -> list[int]:
        if text not in self.known:
            if len(self.known) > 200_000:
                self.known.clear()
            self.known[text] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return self.known[text]

    def lines(self, text: str) -> list[int]:
        return [i for line in LINES.split(text) for i in self.line(line)]

    def __call__(self, row: Row) -> Ids:
        messages = [{"role": role, "content": content} for role, content in row.messages]
        how: dict[str, Any] = {"add_generation_prompt": True, "tokenize": False}
        text = self.tokenizer.apply_chat_template(messages, **how)
        reply: list[int] = []
        scores: list[tuple[int, float]] = []
        for part in row.reply:
            if isinstance(part, str):
                reply += self.lines(part)
            else:
                scores.append((len(reply), part))
                reply.append(self.numbers[round(100 * part)])
        reply += [self.tokenizer.eos_token_id] * (row.skill != "lookup")
        weights = self.weights(reply) if row.skill in ("evidence", "lookup") else None
        return Ids(self.lines(text), reply, self.chances(row, reply), scores, weights)

    def chances(self, row: Row, reply: list[int]) -> Soft:
        """The exact chances of each token: a diagnosis could be another, a judgement the
        opposite."""
        if row.skill == "p_true":
            assert row.chances is not None
            judged = dict(zip(self.verdicts, row.chances, strict=True))
            return [judged, *([None] * (len(reply) - 1))]
        if row.options is not None:
            every = [[*self.lines(o), self.tokenizer.eos_token_id] for o in row.options]
            chances = list(row.options.values())
        elif row.chances is not None:
            every, chances = self.answers, list(row.chances)
        else:
            return [None] * len(reply)
        soft: Soft = []
        for i in range(len(reply)):
            found: dict[int, float] = {}
            for answer, p in zip(every, chances, strict=True):
                if p > 1e-5 and answer[:i] == reply[:i]:
                    found[answer[i]] = found.get(answer[i], 0.0) + float(p)
            total = sum(found.values())
            soft.append({k: v / total for k, v in found.items()} if len(found) > 1 else None)
        return soft

    def weights(self, reply: Sequence[int]) -> list[float]:
        """Of each token of an evidence reply, as :data:`DECIDES` says."""
        found, begun, summed = [1.0] * len(reply), -1, False
        for i, token in enumerate(self.tokenizer.convert_ids_to_tokens(list(reply))):
            summed = (summed or '"summary"' in token) and '"confidence"' not in token
            if summed:
                found[i] = KEY if reply[i] in self.fixed else SUMMED
            if '"evidence": ' in token:
                begun, found[i] = i, ENTRY
            if '"support_level": ' in token and begun >= 0:
                weight = DECIDES if "contradicted" in token else ENTRY
                found[begun : i + 1] = [weight] * (i + 1 - begun)
                begun = -1
        return found

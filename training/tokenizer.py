"""A unigram tokenizer whose vocabulary holds whole phrases.

What a patient may answer, a passage's sentence, a line of a prompt, a piece of the JSON replies is
one token each. Whatever else is written falls into words, letters or bytes.

So a patient takes about three tokens a statement, and a quotation is the very token that stands in
the patient's words. Names of conditions are held in pieces of four letters only, so that an answer
has several tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trustlab.prompts import names, render

from .clinic import pieces as clinic_pieces
from .evidence import json_pieces
from .passages import keywords, passages
from .replies import reply_pieces
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


def prompt_lines(every: Sequence[Collection[str]] = OPTIONS) -> Iterator[str]:
    """Every fixed piece of text of the prompts, cut at their slots; lines begin with their line
    break."""
    for name in names():
        for options in every:
            for _, text in render(
                name, patient="|", answer="|", passages="|", profile="|", options=options
            ):
                for line in re.split(r"(?=\n)", text):
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
    world: World, whole: Iterable[str] | None = None, single: Iterable[str] | None = None
) -> list[tuple[str, float]]:
    """(token, log-weight), each token once, in a fixed order; ``whole`` in place of the phrases
    above, ``single`` of the words."""
    weights = dict.fromkeys(SPECIAL, 0.0)
    for c in world.knowledge.conditions.values():
        weights |= {c.name[i : i + 4]: PIECE for i in range(0, len(c.name), 4)}
    for text in phrases(world) if whole is None else whole:
        if text and text not in weights:
            weights[text] = PHRASE
    for word in words(world) if single is None else single:
        weights.setdefault(word, WORD)
    for code in range(32, 127):
        weights.setdefault(chr(code), LETTER)
    weights.setdefault("\n", LETTER)
    return list(weights.items()) + [(f"<0x{b:02X}>", BYTE) for b in range(256)]


def build_tokenizer(
    world: World, tokens: list[tuple[str, float]] | None = None
) -> PreTrainedTokenizerFast:
    """Wrap the vocabulary (or other tokens) as a Hugging Face tokenizer with its chat template."""
    tokens = vocabulary(world) if tokens is None else tokens
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

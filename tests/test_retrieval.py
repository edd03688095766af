"""Finding passages: BM25 against its formula, reading a corpus, and the project's own corpus."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training import passages as source
from trustlab.datasets import DataError
from trustlab.knowledge import load_knowledge
from trustlab.retrieval import BM25, Passage, load_corpus, terms
from trustlab.retrieval.corpus import FILE


def made(*texts: str) -> list[Passage]:
    return [Passage(f"p{i}", "t", text, text) for i, text in enumerate(texts)]


def ids(found: list[Passage]) -> list[str]:
    return [p.id for p in found]


# BM25


def okapi(documents: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """Okapi BM25; a word in more than half of the documents weighs a quarter of the mean inverse document frequency."""
    n = len(documents)
    mean_length = sum(map(len, documents)) / n
    words = {word for document in documents for word in document}
    within = {word: sum(word in document for document in documents) for word in words}
    raw = {word: math.log((n - within[word] + 0.5) / (within[word] + 0.5)) for word in words}
    floor = 0.25 * sum(raw.values()) / len(raw)
    scores = []
    for document in documents:
        counts, norm = Counter(document), 1 - b + b * len(document) / mean_length
        parts = [
            (raw[word] if within[word] <= n / 2 else floor) * counts[word] * (k1 + 1) / (counts[word] + k1 * norm)
            for word in query
            if word in words
        ]
        scores.append(sum(parts))
    return scores


WORDS = ("fever", "cough", "rash", "pain", "gout", "croup")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=12),
    st.lists(st.sampled_from([*WORDS, "absent"]), max_size=3),
    st.sampled_from([(1.2, 0.75), (0.9, 0.4), (2.0, 0.0)]),
)
def test_the_formula_decides_the_order(documents: list[list[str]], query: list[str], k1_b: tuple[float, float]) -> None:
    k1, b = k1_b
    found = BM25(made(*map(" ".join, documents)), k1=k1, b=b).search(" ".join(query), len(documents))
    scores = okapi(documents, query, k1, b)
    assert {p.id for p in found} == {f"p{i}" for i, document in enumerate(documents) if set(document) & set(query)}
    ranked = [scores[int(p.id[1:])] for p in found]
    assert all(a >= b or a == pytest.approx(b, rel=1e-9, abs=1e-12) for a, b in zip(ranked, ranked[1:], strict=False))


def test_the_defaults_are_the_papers() -> None:
    documents = [
        d.split() for d in ("gout gout pain", "gout fever rash cough pain fever rash", "gout", "rash", "cough", "croup", "x")
    ]
    scores = okapi(documents, ["gout", "pain"], 1.2, 0.75)
    wanted = sorted((i for i in range(7) if scores[i]), key=lambda i: -scores[i])
    assert ids(BM25(made(*map(" ".join, documents))).search("gout pain")) == [f"p{i}" for i in wanted]
    assert BM25(made("gout")).revision.startswith("bm25 k1=1.2 b=0.75 passages=1 ")


def test_ties_are_in_corpus_order_and_k_cuts() -> None:
    index = BM25(made("rash", "croup", "gout", "croup", "fever", "croup", "pain", *["cough"] * 9))
    assert ids(index.search("croup")) == ["p1", "p3", "p5"]
    assert [ids(index.search("croup", k)) for k in (0, 1, 2)] == [[], ["p1"], ["p1", "p3"]]
    assert len(BM25(made(*["croup"] * 20, *["gout"] * 30)).search("croup")) == 15


def test_a_rarer_word_weighs_more_and_more_of_it_too() -> None:
    index = BM25(made("rash gout", "rash fever", "rash pain", "x", "y", "z", "w", "v"))
    assert ids(index.search("rash gout")) == ["p0", "p1", "p2"]
    index = BM25(made("rash x", "rash rash", "y", "z", "w"))
    assert ids(index.search("rash")) == ["p1", "p0"]


@pytest.mark.parametrize("query", ["", "gout", "the and of", "...", "cro", "croups"])
def test_nothing_is_found_where_no_word_of_the_query_stands(query: str) -> None:
    assert BM25(made("acute croup", "rash", "the fever and the cough")).search(query) == []


@pytest.mark.parametrize("texts", [("croup",), ("croup", "gout"), ("croup", "croup"), ("croup", "croup", "gout")])
def test_a_passage_with_the_word_is_found_however_common_the_word_is(texts: tuple[str, ...]) -> None:
    assert ids(BM25(made(*texts)).search("croup")) == [f"p{i}" for i, text in enumerate(texts) if text == "croup"]


@pytest.mark.parametrize("passages", [[], made("the and of", "...")])
def test_a_library_without_words_is_refused(passages: list[Passage]) -> None:
    with pytest.raises(ValueError, match="no passage holds a word"):
        BM25(passages)


def test_terms() -> None:
    assert terms("The Guillain-Barré syndrome, type 2: it IS of the nerves.") == [
        "guillain",
        "barré",
        "syndrome",
        "type",
        "2",
        "nerves",
    ]
    assert terms(" \n ") == []


def test_title_is_searched_and_case_is_not() -> None:
    passage = Passage("a", "Croup: tests", "Steam.", "Croup: tests. Steam.")
    assert BM25([*made("rash", "gout", "pain"), passage]).search("CROUP") == [passage]


def test_revision_tells_corpora_and_settings_apart() -> None:
    a, b = made("croup", "gout")
    revisions = [BM25(p).revision for p in ([a, b], [b, a], [a], made("croup", "gut"))] + [BM25([a, b], k1=1.5).revision]
    assert len(set(revisions)) == 5
    assert BM25(made("croup", "gout")).revision == revisions[0]


# Reading a corpus


def row(**change: object) -> dict[str, object]:
    return {"id": "a", "title": "Croup", "content": "It barks.", "contents": "Croup. It barks."} | change


def written(folder: Path, *rows: object, encoding: str = "utf-8") -> Path:
    file = folder / "corpus.jsonl"
    lines = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in rows]
    file.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return file


def test_passages_are_read_in_file_order(tmp_path: Path) -> None:
    file = written(tmp_path, row(id="b", source="ours"), "", row(id="a", content="Ödem."), "  \r")
    found = load_corpus(str(file))
    assert found == (
        Passage("b", "Croup", "It barks.", "Croup. It barks."),
        Passage("a", "Croup", "Ödem.", "Croup. It barks."),
    )
    assert load_corpus(written(tmp_path, row(), encoding="utf-8-sig")) == (
        Passage("a", "Croup", "It barks.", "Croup. It barks."),
    )


def test_contents_are_built_where_they_are_absent(tmp_path: Path) -> None:
    bare = {k: v for k, v in row().items() if k != "contents"}
    for given_row in (bare, row(contents=None), row(contents="")):
        assert load_corpus(written(tmp_path, given_row))[0].contents == "Croup. It barks."


BAD: list[tuple[object, str]] = [
    ("{not json", "line"),
    ('{"id": "x"', "line"),
    ("[" * 100_000, "line"),
    ('{"id": ' + "1" * 5000 + "}", "line"),
    ('["a", "b"]', "line"),
    ("7", "line"),
    (row(id="a"), "id"),
    (row(id=None), "id"),
    (row(id=7), "id"),
    (row(id=" "), "id"),
    (row(id="b", title=""), "title"),
    (row(id="b", title=["Croup"]), "title"),
    (row(id="b", content="\n"), "content"),
    ({"id": "b", "title": "Croup"}, "content"),
    ({"title": "Croup", "content": "It barks."}, "id"),
    ({"id": "b", "content": "It barks."}, "title"),
    (row(id="b", contents=5), "contents"),
]


@pytest.mark.parametrize(("bad", "field"), BAD, ids=lambda v: str(v)[:40])
def test_a_bad_line_is_named(tmp_path: Path, bad: object, field: str) -> None:
    file = written(tmp_path, row(), "", bad)
    with pytest.raises(DataError) as refused:
        load_corpus(file)
    assert (refused.value.file, refused.value.row, refused.value.field) == (str(file), 3, field)


def test_a_file_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-8"):
        load_corpus(written(tmp_path, row(content="Ödem."), encoding="latin-1"))
    with pytest.raises(DataError, match="at least one passage"):
        load_corpus(written(tmp_path, "", " "))
    for absent in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(ValueError, match="is no file"):
            load_corpus(absent)


# The project's corpus


def test_the_source_has_no_problems() -> None:
    assert list(source.problems(load_knowledge())) == []


def test_the_file_is_what_its_source_makes() -> None:
    assert source.TARGET == FILE
    lines = [json.dumps(p.record(), ensure_ascii=False) + "\n" for p in source.passages()]
    assert FILE.read_bytes() == "".join(lines).encode("utf-8")


def test_three_passages_for_each_condition() -> None:
    corpus = load_corpus()
    conditions = load_knowledge().conditions
    assert len(corpus) == len({p.id for p in corpus}) == len({p.contents for p in corpus}) == 3 * len(conditions) == 195
    assert list(source.keywords()) == list(conditions)
    titles = Counter(p.title.rpartition(":")[0] for p in corpus)
    assert titles == {c.name: 3 for c in conditions.values()}
    assert all(p.contents == f"{p.title}. {p.content}" for p in corpus)


@pytest.fixture(scope="module")
def library() -> BM25:
    return BM25(load_corpus())


@pytest.mark.parametrize("condition", list(load_knowledge().conditions))
def test_the_keyword_finds_all_three_passages_of_its_condition(library: BM25, condition: str) -> None:
    wanted = {p.id for p in source.by_condition()[condition]}
    found = ids(library.search(source.keywords()[condition]))
    assert len(found) <= 15 and wanted <= set(found)

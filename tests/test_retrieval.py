"""Finding passages: both retrievers against the formula, the project's own corpus, and the measures
of a ranking."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path

import pytest
from each import each
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_corpora import ids, made, written_passages

from benchmarks.retrieval import ndcg
from training import passages as source
from trustlab.knowledge.findings import load_knowledge
from trustlab.retrieval import BM25, Passage, terms
from trustlab.retrieval.corpora import FILE, corpus_files, load_corpus
from trustlab.retrieval.disk_index import BM25S, open_index

Open = Callable[..., BM25 | BM25S]


@pytest.fixture(scope="session", params=["rank_bm25", "bm25s"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Opens passages with one retriever, and every test runs with both."""
    folder: Path = tmp_path_factory.mktemp("corpora")
    numbers = count()

    def of(passages: list[Passage]) -> BM25 | BM25S:
        if request.param == "rank_bm25":
            return BM25(passages)
        file = written_passages(folder, passages, f"{next(numbers)}.jsonl")
        return open_index(corpus_files(file), folder / "indexes")

    return of


# Both retrievers


def okapi(documents: list[list[str]], query: list[str], k1: float, b: float) -> list[float]:
    """Okapi BM25; with Lucene's idf where a word is in half of the documents or more."""
    n = len(documents)
    mean_length = sum(map(len, documents)) / n
    words = {word for document in documents for word in document}
    within = {word: sum(word in document for document in documents) for word in words}
    odds = {word: (n - within[word] + 0.5) / (within[word] + 0.5) for word in words}
    weight = math.log if min(odds.values()) > 1 else math.log1p
    scores = []
    for document in documents:
        counts, norm = Counter(document), 1 - b + b * len(document) / mean_length
        heard = [(odds[w], counts[w]) for w in query if w in words]
        scores.append(sum(weight(o) * n * (k1 + 1) / (n + k1 * norm) for o, n in heard))
    return scores


WORDS = ("fever", "cough", "rash", "pain", "gout", "croup")


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=12),
    st.lists(st.sampled_from([*WORDS, "absent"]), max_size=3),
)
@example([["croup"], ["gout"]], ["croup"])  # in just half of them
def test_the_formula_decides_scores_and_order(
    opened: Open, documents: list[list[str]], query: list[str]
) -> None:
    index = opened(made(*map(" ".join, documents)))
    scores = okapi(documents, query, 1.2, 0.75)
    assert index.scores(" ".join(query)) == pytest.approx(scores, rel=1e-5, abs=1e-6)
    found = [int(p.id[1:]) for p in index.search(" ".join(query), len(documents))]
    assert set(found) == {i for i, words in enumerate(documents) if set(words) & set(query)}
    for one, other in pairwise(scores[i] for i in found):
        assert one >= other or one == pytest.approx(other, rel=1e-5, abs=1e-6)


def test_ties_are_in_corpus_order_and_k_cuts(opened: Open) -> None:
    index = opened(made("rash", "croup", "gout", "croup", "fever", "croup", "pain", *["cough"] * 9))
    assert [ids(index.search("croup", k)) for k in (0, 1, 2)] == [[], ["p1"], ["p1", "p3"]]
    many = opened(made(*["croup"] * 20, *["gout"] * 30))
    assert ids(many.search("croup")) == [f"p{i}" for i in range(15)]
    assert " k1=1.2 b=0.75 passages=50 " in many.revision


@each(
    ("spelt", "query"),
    [
        (unicodedata.normalize("NFD", "Ménière"), "Ménière"),
        ("Ménière", unicodedata.normalize("NFD", "Ménière")),
        ("\ufb01bromyalgia", "fibromyalgia"),
        ("fibro\u00admyalgia", "fibromyalgia"),
        ("fibro\u00ad\n myalgia", "fibromyalgia"),
        ("fibro\u200bmyalgia", "fibromyalgia"),
        ("Guillain\u2011Barré", "Guillain-Barré"),
        ("Ｇｏｕｔ", "gout"),
    ],
)
def test_a_word_is_found_however_it_is_spelt(opened: Open, spelt: str, query: str) -> None:
    assert ids(opened(made("rash", f"the {spelt} of old", "x")).search(query)) == ["p1"]
    assert terms(spelt) == terms(query)


def test_what_holds_no_word_is_refused(opened: Open) -> None:
    index = opened(made("the and of", "croup", "..."))
    assert " passages=3 " in index.revision and ids(index.search("croup the")) == ["p1"]
    with pytest.raises(ValueError, match="no passage"):
        opened(made("the and of", "..."))


def test_title_is_searched_and_case_is_not(opened: Open) -> None:
    passage = Passage("a", "Croup: tests", "Steam.", "Croup: tests. Steam.")
    assert opened([*made("rash", "gout", "pain"), passage]).search("CROUP") == [passage]


def test_revision_tells_corpora_apart(opened: Open) -> None:
    a, b = made("croup", "gout")
    revisions = [opened(p).revision for p in ([a, b], [b, a], [a], made("croup", "gut"), [a, b])]
    assert len(set(revisions)) == 4
    assert revisions[0] == revisions[4]


def test_terms() -> None:
    wanted = ["guillain", "barré", "syndrome", "type", "2", "nerves"]
    assert terms("The Guillain-Barré syndrome, type 2: it IS of the nerves.") == wanted
    assert terms(" \n ") == []


# The project's corpus


def test_the_file_is_what_its_source_makes_three_passages_for_each_condition() -> None:
    assert list(source.problems(load_knowledge())) == [] and source.TARGET == FILE
    lines = [json.dumps(p.record(), ensure_ascii=False) + "\n" for p in source.passages()]
    assert FILE.read_bytes() == "".join(lines).encode("utf-8")
    conditions = load_knowledge().conditions
    titles = Counter(p.title.rpartition(":")[0] for p in load_corpus())
    assert titles == {c.name: 3 for c in conditions.values()}
    assert list(source.keywords()) == list(conditions)


@pytest.fixture(scope="module")
def library() -> BM25:
    return BM25(load_corpus())


@each("condition", list(load_knowledge().conditions))
def test_the_keyword_finds_all_three_passages_of_its_condition(
    library: BM25, condition: str
) -> None:
    wanted = {p.id for p in source.by_condition()[condition]}
    found = ids(library.search(source.keywords()[condition]))
    assert len(found) <= 15 and wanted <= set(found)


# The measures that benchmarks/retrieval.py reports


def test_ndcg_by_hand() -> None:
    judged = {"a": 2, "b": 1, "c": 0, "d": 1}
    best = 3 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(["a", "b", "d", "c"], judged) == pytest.approx(1)
    assert ndcg(["b", "x", "a"], judged) == pytest.approx(
        (1 / math.log2(2) + 3 / math.log2(4)) / best
    )
    assert ndcg(["b", "a"], judged, depth=1) == pytest.approx(1 / 3)
    assert ndcg(["x", "c"], judged) == ndcg([], judged) == 0

"""The index on disk: ranked as the reference ranks, made once, never half made, made again when out
of date, and refused when damaged."""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from made_corpora import ids, made, written, written_passages
from saying import saying

from trustlab.datasets import DataError
from trustlab.retrieval import BM25, Passage, disk_index
from trustlab.retrieval.corpora import FILE, corpus_files, load_corpus
from trustlab.retrieval.disk_index import BM25S, open_index, open_retriever

TEXTS = ["croup barks at night", "gout hurts in the toe", "a rash itches", "croup and fever"]
TEXTS += ["fever, rash and croup"]


def opened(file: Path) -> BM25S:
    return open_index(corpus_files(file), file.parent / "indexes")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return written_passages(tmp_path, made(*TEXTS))


def kept(corpus: Path) -> list[Path]:
    """All that lies where the indexes of ``corpus`` are."""
    return sorted((corpus.parent / "indexes").glob("*"))


def test_the_own_corpus_is_ranked_as_by_the_reference_and_is_the_default(tmp_path: Path) -> None:
    reference, other = BM25(load_corpus()), open_index(corpus_files(FILE), tmp_path)
    assert open_retriever().search("croup") == reference.search("croup")
    for query in ["fever fever cough unheard", *sorted({p.title for p in reference.passages})[::3]]:
        assert other.scores(query) == pytest.approx(reference.scores(query), rel=0, abs=1e-6), query
        assert other.search(query, 200) == reference.search(query, 200), query


def test_few_passages_are_held_in_memory_and_many_in_an_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_index.paths, "RUNS", corpus.parent)

    def kind(n: int) -> type:
        monkeypatch.setattr(disk_index, "LARGE", n)
        return type(open_retriever(corpus))

    assert (kind(len(TEXTS)), kept(corpus)) == (BM25, [])
    assert kind(len(TEXTS) - 1) is BM25S and len(kept(corpus)) == 1
    monkeypatch.setitem(sys.modules, "bm25s", None)
    assert kind(len(TEXTS)) is BM25
    with pytest.raises(ImportError, match=saying("bm25s", 'pip install "trustlab[corpora]"')):
        kind(len(TEXTS) - 1)


def test_an_index_is_made_once_whatever_its_file_is_called(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = written(corpus.parent, *corpus.read_text().splitlines(), name="packed.jsonl.gz")
    revisions = {opened(corpus).revision, opened(packed).revision}
    assert revisions == {BM25(made(*TEXTS)).revision.replace("bm25 ", "bm25s ", 1)}
    monkeypatch.setattr(disk_index, "_build", lambda *_: pytest.fail("an index was built"))
    again = opened(corpus.rename(corpus.with_name("other.jsonl")))
    assert ids(again.search("croup fever")) == ids(BM25(made(*TEXTS)).search("croup fever"))


def test_other_words_or_passages_make_another_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(corpus)
    odd = Passage("new", " ", "Ödem\u2028\n\t\"'\\ 漢", "Ödem\u2028\n\t\"'\\ 漢")
    written_passages(corpus.parent, [*made(*TEXTS), odd])
    assert opened(corpus).search("ödem") == [odd] and len(kept(corpus)) == 2
    monkeypatch.setattr("trustlab.retrieval.bm25.stop_words", lambda: frozenset({"croup"}))
    assert opened(corpus).search("croup") == [] and len(kept(corpus)) == 3
    file = written(corpus.parent, "Gout hurts.", name="gout.txt")
    opened(file)
    moved = file.rename(corpus.parent / "toes.txt")
    assert ids(opened(moved).search("gout")) == ["toes.txt-1"]


def test_an_index_with_a_damaged_file_is_refused_until_its_folder_is_deleted(corpus: Path) -> None:
    wanted = ids(opened(corpus).search("croup"))
    (folder,) = kept(corpus)
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        for damage in (content[:-1] + bytes([content[-1] ^ 1]), content[:-1], None):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(ValueError, match=saying(folder.name, "index", "delete")):
                opened(corpus)
            file.write_bytes(content)
    shutil.rmtree(folder)
    assert ids(opened(corpus).search("croup")) == wanted and kept(corpus) == [folder]


def test_a_build_that_fails_or_whose_corpus_changes_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {"id": "a", "title": "", "content": "Croup barks."}
    file, build = written(tmp_path, line, "{no json"), disk_index._build
    with pytest.raises(DataError, match="row 2"):
        opened(file)
    assert kept(file) == []

    def changing(*given: Any) -> None:
        build(*given)
        written(tmp_path, line, line | {"id": "new"})

    monkeypatch.setattr(disk_index, "_build", changing)
    with pytest.raises(ValueError, match=saying("changed", "index")):
        opened(written(tmp_path, line))
    assert kept(file) == []


def test_many_may_open_a_new_corpus_at_once(corpus: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ids(opened(corpus).search("croup")), range(4)))
    assert found == [["p3", "p0", "p4"]] * 4 and len(kept(corpus)) == 1

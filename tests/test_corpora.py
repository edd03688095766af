"""Reading a corpus: snippets, plain text, folders and lists of them, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from made_corpora import ids, row, written
from saying import saying

from trustlab.datasets import DataError
from trustlab.retrieval import Passage
from trustlab.retrieval.corpora import LONGEST, cut, load_corpus

HOW = [{"end": ""}, {"end": "\r\n\r\n"}, {"encoding": "utf-8-sig"}]
HOW += [{"name": "CORPUS.JSONL.GZ", "encoding": "utf-8-sig", "end": ""}]


@each("how", HOW)
def test_passages_are_read_in_file_order(tmp_path: Path, how: dict[str, str]) -> None:
    bare = {k: v for k, v in row(id="c", source="ours").items() if k != "contents"}
    untitled = row(id="d", title="", contents="")
    rows = [row(), "", row(id="b", content="Ödem.\u2028Ja.", contents=None), "  \r", bare, untitled]
    assert load_corpus(str(written(tmp_path, *rows, **how))) == (
        Passage("a", "Croup", "It barks.", "Croup. It barks."),
        Passage("b", "Croup", "Ödem.\u2028Ja.", "Croup. Ödem.\u2028Ja."),
        Passage("c", "Croup", "It barks.", "Croup. It barks."),
        Passage("d", "", "It barks.", "It barks."),
    )


BAD: list[tuple[object, str]] = [
    ("{not json", "line"),
    ("[" * 100_000, "line"),
    ('{"id": ' + "1" * 5000 + "}", "line"),
    ('["a", "b"]', "line"),
    (row(id="a"), "id"),
    (row(id=None), "id"),
    (row(id=" "), "id"),
    (row(id="b", title=None), "title"),
    (row(id="b", content="\n"), "content"),
    ({"id": "b", "content": "It barks."}, "title"),
    (row(id="b", contents=5), "contents"),
    (r'{"id": "b", "title": "Croup", "content": "\ud800"}', "content"),
    ('{"id": "b"}\0', "encoding"),
]


@each(("bad", "field"), BAD, ids=lambda v: str(v)[:40])
@each("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_bad_line_is_named(tmp_path: Path, bad: object, field: str, name: str) -> None:
    file = written(tmp_path, row(), "", bad, name=name)
    with pytest.raises(DataError) as refused:
        load_corpus(file)
    assert (refused.value.file, refused.value.row, refused.value.field) == (str(file), 3, field)


def test_a_text_is_cut_at_sentence_ends_into_passages_as_long_as_allowed(tmp_path: Path) -> None:
    first, second, third = ("A" * 600 + ".", "B" * 397 + ".", "C" * 10 + ".")
    text = f"\ufeff{first}\r\n{second}\n\n{third}"
    (tmp_path / "croup care.md").write_text(text, encoding="utf-8")
    title = "croup care"
    assert load_corpus(tmp_path / "croup care.md") == tuple(
        Passage(f"croup care.md-{i}", title, content, f"{title}. {content}")
        for i, content in enumerate([f"{first} {second}", third], 1)
    )
    assert [len(p) for p in cut("A" * 600 + ". " + "B" * 398 + ".")] == [601, 399]
    sentence = "Croup " + "barks-and-barks " * 100 + "loudly."  # cut between words
    found = list(cut(sentence))
    assert " ".join(found) == sentence
    assert max(map(len, found)) <= LONGEST and len(found) == 2
    word = "G" * 1200  # stays whole
    wanted = ["Short one. See", word, "here. Short two."]
    assert list(cut(f"Short one. See {word} here. Short two.")) == wanted


@settings(max_examples=50)
@given(st.text(st.sampled_from("ab.!? \n\"'Äé9-"), max_size=4000))
def test_nothing_is_lost_doubled_or_too_long(text: str) -> None:
    found = list(cut(text))
    assert " ".join(found).split() == text.split()
    assert all(len(p) <= LONGEST or " " not in p for p in found)


def test_a_folder_is_read_through_sorted_by_name(tmp_path: Path) -> None:
    written(tmp_path, row(id="2"), name="chunk/b.jsonl")
    written(tmp_path, row(id="1"), name="chunk/a.jsonl.gz")
    written(tmp_path, row(id="3"), name="chunk/deep/c.jsonl")
    written(tmp_path, "Gout hurts.", name="z/gout.txt")
    for passed_over in ("README.md", ".hidden.jsonl", ".git/x.jsonl", "notes.csv"):
        written(tmp_path, "not a corpus {", name=passed_over)
    written(tmp_path, name="chunk/empty.jsonl")
    assert ids(load_corpus(tmp_path)) == ["1", "2", "3", "z/gout.txt-1"]
    listed = load_corpus([tmp_path / "z/gout.txt", str(tmp_path / "chunk" / "deep")])
    assert ids(listed) == ["gout.txt-1", "3"]


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    first = written(tmp_path, row(id="x"), "", row(), name="first.jsonl.gz")
    second = written(tmp_path, row(id="y"), row(), name="second.jsonl")
    with pytest.raises(DataError, match="earlier passage") as refused:
        load_corpus([first, second])
    assert (refused.value.file, refused.value.row, refused.value.value) == (str(second), 2, "a")


LINE = '{"id": "a", "title": "Croup", "content": "Ödem: it barks."}\n'.encode()
PACKED = gzip.compress(LINE)


@each(
    ("name", "content", "said"),
    [
        ("c.jsonl.gz", PACKED[:-12], "gzip"),
        ("c.jsonl.gz", PACKED[:-6] + b"wrong!", "gzip"),
        ("c.jsonl.gz", LINE, "gzip"),
        ("c.jsonl", LINE.decode().encode("utf-16"), ("UTF-8", "UTF-16")),
        ("c.txt", "Gout hurts.".encode("utf-16"), ("UTF-8", "UTF-16")),
        ("c.jsonl", LINE.decode().encode("latin-1"), ("row 1", "encoding", "UTF-8")),
        ("c.jsonl", b" \n\r\n", "one passage"),
        ("c.jsonl.gz", gzip.compress(b""), "one passage"),
        ("c.txt", b" \n\n", "one passage"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused(tmp_path, name, content, said) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=saying(said)) as refused:
        load_corpus(tmp_path / name)
    assert refused.value.file == str(tmp_path / name)


def test_a_path_that_names_no_corpus_is_refused(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "absent.jsonl", ("absent.jsonl", ".jsonl", ".txt")),
        (tmp_path, ("no corpus file", ".jsonl")),
        (written(tmp_path, row(), name="corpus.csv"), ("corpus.csv", "ending", ".jsonl")),
        ([], ("path", "[]", ".jsonl")),
    ):
        with pytest.raises(ValueError, match=saying(words)):
            load_corpus(path)
    written(tmp_path, " ", name="empty/b.txt")
    with pytest.raises(DataError, match=saying("folder", "'no passages'")):
        load_corpus(tmp_path / "empty")

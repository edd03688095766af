"""Reading a corpus: snippets, plain text, folders and lists of them, and what is refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from made_corpora import ids, row, written

from trustlab.datasets import DataError
from trustlab.retrieval import Passage, corpus, load_corpus
from trustlab.retrieval.corpus import LONGEST, cut

CROUP = Passage("a", "Croup", "It barks.", "Croup. It barks.")


# Snippets


def test_passages_are_read_in_file_order(tmp_path: Path) -> None:
    file = written(
        tmp_path, row(id="b", source="ours"), "", row(id="a", content="Ödem.\u2028Ja."), "  \r"
    )
    found = load_corpus(str(file))
    assert found == (
        Passage("b", "Croup", "It barks.", "Croup. It barks."),
        Passage("a", "Croup", "Ödem.\u2028Ja.", "Croup. It barks."),
    )


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"end": ""},
        {"end": "\r\n\r\n"},
        {"encoding": "utf-8-sig"},
        {"name": "corpus.jsonl.gz"},
        {"name": "CORPUS.JSONL.GZ", "encoding": "utf-8-sig", "end": ""},
    ],
    ids=str,
)
def test_a_file_may_be_gzipped_have_a_mark_or_end_without_a_newline(
    tmp_path: Path, how: dict[str, str]
) -> None:
    assert load_corpus(written(tmp_path, row(), **how)) == (CROUP,)


def test_contents_are_built_where_they_are_absent(tmp_path: Path) -> None:
    for given_row in ({k: v for k, v in row().items() if k != "contents"}, row(contents=None)):
        assert load_corpus(written(tmp_path, given_row)) == (CROUP,)
    untitled = load_corpus(written(tmp_path, row(title="", contents="")))
    assert untitled == (Passage("a", "", "It barks.", "It barks."),)


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


# Plain text


def test_a_text_is_cut_at_sentence_ends_into_passages_as_long_as_allowed(tmp_path: Path) -> None:
    first, second, third = ("A" * 600 + ".", "B" * 397 + ".", "C" * 10 + ".")
    (tmp_path / "croup care.txt").write_text(f"{first}\n{second}\n\n{third}", encoding="utf-8")
    found = load_corpus(tmp_path / "croup care.txt")
    assert [p.content for p in found] == [f"{first} {second}", third]
    assert ids(found) == ["croup care.txt-1", "croup care.txt-2"]
    assert {p.title for p in found} == {"croup care"}
    assert found[1].contents == f"croup care. {third}"


def test_how_long_a_passage_is() -> None:
    assert [len(p) for p in cut("A" * 600 + ". " + "B" * 399 + ".")] == [601, 400]
    assert [len(p) for p in cut("A" * 600 + ". " + "B" * 397 + ".")] == [1000]
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


# Folders and lists


def test_a_folder_is_read_through_sorted_by_name(tmp_path: Path) -> None:
    written(tmp_path, row(id="2"), name="chunk/b.jsonl")
    written(tmp_path, row(id="1"), name="chunk/a.jsonl.gz")
    written(tmp_path, row(id="3"), name="chunk/deep/c.jsonl")
    written(tmp_path, "Gout hurts.", name="z/gout.txt")
    for passed_over in ("README.md", ".hidden.jsonl", ".git/x.jsonl", "notes.csv"):
        written(tmp_path, "not a corpus {", name=passed_over)
    assert ids(load_corpus(tmp_path)) == ["1", "2", "3", "z/gout.txt-1"]


def test_a_list_is_read_in_its_order_and_an_empty_file_in_a_folder_passed_over(
    tmp_path: Path,
) -> None:
    b = written(tmp_path, row(id="b"), name="b.jsonl")
    a = written(tmp_path, row(id="a"), name="more/a.jsonl")
    written(tmp_path, name="more/empty.jsonl")
    assert ids(load_corpus([b, str(a.parent)])) == ["b", "a"]
    (tmp_path / "gout.md").write_bytes("\ufeff# Gout\r\n\r\nThe toe hurts.\r\n".encode())
    gout = Passage("gout.md-1", "gout", "# Gout The toe hurts.", "gout. # Gout The toe hurts.")
    assert load_corpus([tmp_path / "gout.md"]) == (gout,)


def test_an_id_that_comes_twice_names_both_places(tmp_path: Path) -> None:
    first = written(tmp_path, row(id="x"), "", row(), name="first.jsonl.gz")
    second = written(tmp_path, row(id="y"), row(), name="second.jsonl")
    with pytest.raises(DataError, match="no earlier passage has") as refused:
        load_corpus([first, second])
    assert (refused.value.file, refused.value.row, refused.value.value) == (str(second), 2, "a")
    assert f"({first}, row 3 has it)" in refused.value.allowed


# What is no corpus


def truncated(content: bytes) -> bytes:
    return gzip.compress(content)[:-12]


def broken(content: bytes) -> bytes:
    packed = bytearray(gzip.compress(content))
    packed[-6] ^= 255  # in the checksum
    return bytes(packed)


LINE = '{"id": "a", "title": "Croup", "content": "Ödem: it barks."}\n'.encode()


@each(
    ("name", "content", "said"),
    [
        ("c.jsonl.gz", truncated(LINE), "a whole gzip file"),
        ("c.jsonl.gz", broken(LINE), "a whole gzip file"),
        ("c.jsonl.gz", LINE, "a whole gzip file"),
        ("c.jsonl", LINE.decode().encode("utf-16"), "UTF-8 text; this looks like UTF-16"),
        ("c.jsonl", LINE.decode().encode("utf-16-le"), "UTF-8 text; this looks like UTF-16"),
        ("c.txt", "Gout hurts.".encode("utf-16"), "UTF-8 text; this looks like UTF-16"),
        ("c.jsonl", LINE.decode().encode("latin-1"), "row 1 .*encoding.*: UTF-8 text; save"),
        ("c.jsonl", b"", "at least one passage"),
        ("c.jsonl", b" \n\r\n", "at least one passage"),
        ("c.jsonl.gz", gzip.compress(b""), "at least one passage"),
        ("c.txt", b" \n\n", "at least one passage"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=said) as refused:
        load_corpus(tmp_path / name)
    assert refused.value.file == str(tmp_path / name)


@each("name", ["c.jsonl", "c.jsonl.gz", "c.txt"])
def test_a_line_that_is_too_long_is_refused_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(corpus, "LONGEST_LINE", 1000)
    with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wb") as file:
        file.write(LINE.rstrip() + b" " * (1000 - len(LINE)) + b"\n" + b"a" * 20_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="more than.*allowed: at most 1,000 bytes") as told:
            load_corpus(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert (told.value.row, told.value.field) == (2, "line")


def test_a_path_that_names_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"absent\.jsonl', which is no file or folder; allowed is files that end in \.jsonl",
    ):
        load_corpus(tmp_path / "absent.jsonl")
    with pytest.raises(ValueError, match="a folder that holds no corpus file"):
        load_corpus(tmp_path)
    with pytest.raises(ValueError, match="whose ending is unknown"):
        load_corpus(written(tmp_path, row(), name="corpus.csv"))
    with pytest.raises(ValueError, match=r"path is \[\]; allowed is"):
        load_corpus([])
    written(tmp_path, " ", name="empty/b.txt")
    with pytest.raises(DataError, match="folder: received 'no passages'"):
        load_corpus(tmp_path / "empty")

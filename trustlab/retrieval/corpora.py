"""Reads a library's files as passages."""

from __future__ import annotations

import gzip
import hashlib
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trustlab.files import DATA
from trustlab.knowledge.sentences import sentences
from trustlab.paths import sha256_of
from trustlab.retrieval import Passage
from trustlab.tables import DataError, json_object, wrong_encoding

FILE = DATA / "corpus" / "passages.jsonl"
TEXTS = (".txt", ".md")
ENDINGS = (".jsonl", ".jsonl.gz", *TEXTS)
ALLOWED = (
    f"files that end in {', '.join(ENDINGS)}, folders of such files, or a list of these"
)
LONGEST = 1000
"""Characters in a passage at most, as in MedRAG's textbook snippets."""
CorpusPath = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class CorpusFile:
    """A file of passages. ``name``: its path within the folder asked for, or its own name."""

    path: Path
    name: str
    in_folder: bool = False

    @property
    def is_text(self) -> bool:
        """Plain text, whose name becomes ids and title; otherwise one JSON object a line."""
        return self.path.name.lower().endswith(TEXTS)


def corpus_files(path: CorpusPath) -> tuple[CorpusFile, ...]:
    """The files of ``path`` (a file, a folder, or a list of either): a list's in its order, those
    of a folder and its folders by name, but for other endings, hidden ones and ``README`` files.
    ``ValueError`` for a path that is not there or has none, and for an empty list."""
    paths: Any = [path] if isinstance(path, str | Path) else path
    if not _are_paths(paths):
        raise ValueError(f"path is {path!r}; allowed is {ALLOWED}")
    files: list[CorpusFile] = []
    for item in paths:
        files += _files_at(Path(item).expanduser())
    return tuple(files)


def _are_paths(paths: object) -> bool:
    if not isinstance(paths, Sequence) or not paths:
        return False
    return all(isinstance(path, str | Path) for path in paths)


def _files_at(path: Path) -> list[CorpusFile]:
    """The file at a path, or those of the folder there, by name."""
    if path.is_file() and path.name.lower().endswith(ENDINGS):
        return [CorpusFile(path, path.name)]
    file_of_name: dict[str, Path] = {}
    if path.is_dir():
        reason = "a folder that holds no corpus file"
        for file in path.rglob("*"):
            name = file.relative_to(path)
            if file.is_file() and _is_corpus_name(name):
                file_of_name[name.as_posix()] = file
    elif path.is_file():
        reason = "whose ending is unknown"
    else:
        reason = "which is no file or folder"
    if not file_of_name:
        raise ValueError(f"path is {str(path)!r}, {reason}; allowed is {ALLOWED}")
    files = sorted(file_of_name.items())
    return [CorpusFile(file, name, in_folder=True) for name, file in files]


def _is_corpus_name(name: Path) -> bool:
    """Whether a file of this name within a folder has an ending that is read, is not hidden, and is
    no README."""
    is_hidden = any(part.startswith(".") for part in name.parts)
    is_readme = name.stem.lower() == "readme"
    return name.name.lower().endswith(ENDINGS) and not is_hidden and not is_readme


def lines(file: CorpusFile) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a UTF-8 file, gzipped or not, without a byte-order
    mark; :class:`DataError` for another encoding and a broken gzip file."""
    is_packed = file.path.name.lower().endswith(".gz")
    try:
        with gzip.open(file.path) if is_packed else file.path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                yield number, _decode(file.path, number, raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            file.path, None, "file", str(error), "a whole gzip file"
        ) from error


def _decode(path: Path, number: int, raw: bytes) -> str:
    """A line's text without its end, nor a byte-order mark in the first."""
    # JSON and text have none, and UTF-16 has one beside nearly every letter
    if b"\0" in raw:
        allowed = "UTF-8 text; this looks like UTF-16: save it as UTF-8"
        raise DataError(path, number, "encoding", raw[:4], allowed)
    encoding = "utf-8-sig" if number == 1 else "utf-8"
    try:
        return raw.decode(encoding).rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, error, row=number) from error


def digest(files: Sequence[CorpusFile]) -> str:
    """SHA-256 of the files' bytes in order, and of a text file's name, which makes its ids."""
    whole = hashlib.sha256()
    for file in files:
        name = file.name if file.is_text else ""
        whole.update(f"{name}\0{sha256_of(file.path)}\n".encode())
    return whole.hexdigest()


def load_corpus(path: CorpusPath | None = None) -> tuple[Passage, ...]:
    """The passages of ``path`` (:func:`corpus_files`; default: the project's own), all in memory.

    - ``.jsonl``, ``.jsonl.gz``: one JSON object for each line, with ``id``, ``title`` (may be
      empty) and ``content``; ``contents`` is optional and else made of title and content.
    - ``.txt``, ``.md``: :func:`cut` into passages, with ids like ``notes.txt-1``, title ``notes``.

    :class:`DataError`: a bad line (counted from 1), an id that occurs twice, an encoding other than
    UTF-8, no passage. ``ValueError``: a path that names no corpus file.
    """
    return tuple(read_passages(corpus_files(FILE if path is None else path)))


def read_passages(files: Sequence[CorpusFile]) -> Iterator[Passage]:
    """The passages of ``files`` one at a time; only their ids are kept in memory."""
    earlier_ids: set[str] = set()
    for file in files:
        n_before = len(earlier_ids)
        for number, passage in _numbered_passages(file):
            if passage.id in earlier_ids:
                once = "an id that no earlier passage has"
                raise DataError(file.path, number, "id", passage.id, once)
            earlier_ids.add(passage.id)
            yield passage
        # MedRAG's scripts leave empty files in their folders.
        if len(earlier_ids) == n_before and not file.in_folder:
            raise DataError(
                file.path, None, "file", "no passages", "at least one passage"
            )
    if not earlier_ids:
        raise DataError(
            files[0].path.parent, None, "folder", "no passages", "at least one passage"
        )


def _numbered_passages(file: CorpusFile) -> Iterator[tuple[int, Passage]]:
    """(line number, or the passage's own in plain text; passage), both from 1."""
    if file.is_text:
        title = Path(file.name).stem
        text = "\n".join(line for _, line in lines(file))
        for number, content in enumerate(cut(text), 1):
            own_id = f"{file.name}-{number}"
            yield number, Passage(own_id, title, content, join_contents(title, content))
        return
    for number, line in lines(file):
        if line.strip():
            yield number, _read_passage(file.path, number, line)


def join_contents(title: str, content: str) -> str:
    """Title and content as one text, as MedRAG joins them."""
    return f"{title}. {content}" if title.strip() else content


def _read_passage(file: Path, number: int, line: str) -> Passage:
    """The passage of a line of JSON."""
    bad = partial(DataError, file, number)
    row = json_object(bad, line)
    for field in ("id", "title", "content"):
        value = row.get(field)
        may_be_empty = field == "title"
        if not isinstance(value, str) or not (may_be_empty or value.strip()):
            raise bad(
                field, value, "a str" if may_be_empty else "a str that is not empty"
            )
    contents = row.get("contents") or join_contents(row["title"], row["content"])
    if not isinstance(contents, str):
        raise bad("contents", contents, "a str")
    return Passage(row["id"], row["title"], row["content"], contents)


def cut(text: str) -> Iterator[str]:
    """Passages of at most :data:`LONGEST` characters that end where a sentence does, white space
    single. A longer sentence is cut between words; a longer word stays whole."""
    passage = ""
    for sentence in sentences(text):
        pieces = textwrap.wrap(
            sentence, LONGEST, break_long_words=False, break_on_hyphens=False
        )
        for piece in pieces:
            if passage and len(passage) + 1 + len(piece) > LONGEST:
                yield passage
                passage = piece
            else:
                passage = f"{passage} {piece}".lstrip()
    if passage:
        yield passage

"""A corpus: passages in MedRAG's snippet form (``id``, ``title``, ``content``, ``contents``), or plain text cut into such."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trustlab.datasets.errors import DataError, each_key_once
from trustlab.paths import DATA
from trustlab.retrieval.files import CorpusFile, CorpusPath, corpus_files, lines
from trustlab.retrieval.text import cut

FILE = DATA / "corpus" / "passages.jsonl"


@dataclass(frozen=True)
class Passage:
    """One passage; ``contents`` is title and content together: what is searched and what a model reads."""

    id: str
    title: str
    content: str
    contents: str


def load_corpus(path: CorpusPath | None = None) -> tuple[Passage, ...]:
    """The passages of ``path`` (default: the project's own), in file order, all in memory.

    ``path`` is a file, a folder, or a list of either; :func:`~trustlab.retrieval.files.corpus_files` says in which order.

    - ``.jsonl``, ``.jsonl.gz``: one JSON object a line with ``id``, ``title`` (may be empty), ``content``, and maybe
      ``contents``; where that is absent it is made of the two. Other keys are ignored.
    - ``.txt``, ``.md``: cut at sentence ends into passages of at most 1,000 characters, without overlap. The id is the
      file's name and a number (``notes.txt-1``), the title its name without the ending.

    Raises :class:`DataError` for a bad line (counted from 1), an id that comes twice in the corpus, another encoding than
    UTF-8, a broken gzip file or no passage, ``ValueError`` for a path that names no corpus file.
    """
    return tuple(read_passages(corpus_files(FILE if path is None else path)))


def read_passages(files: Sequence[CorpusFile]) -> Iterator[Passage]:
    """The passages of ``files`` one at a time, in order; only their ids are kept in memory. Errors: :func:`load_corpus`."""
    seen: set[str] = set()
    for i, file in enumerate(files):
        n_before = len(seen)
        for number, passage in _numbered(file):
            if passage.id in seen:
                raise DataError(file.path, number, "id", passage.id, _taken(files[: i + 1], passage.id))
            seen.add(passage.id)
            yield passage
        if len(seen) == n_before and not file.in_folder:  # MedRAG's scripts leave empty files in their folders
            raise DataError(file.path, None, "file", "no passages", "at least one passage")
    if not seen:
        raise DataError(files[0].path.parent, None, "folder", "no passages", "at least one passage")


def _taken(files: Sequence[CorpusFile], wanted: str) -> str:
    """Says where an id was first; the files are read again, so that places need not be kept for a million ids."""
    first = next((f.path, number) for f in files for number, passage in _numbered(f) if passage.id == wanted)
    return f"an id that no earlier passage has ({first[0]}, row {first[1]} has it)"


def _numbered(file: CorpusFile) -> Iterator[tuple[int, Passage]]:
    """(line number, or the passage's own in plain text; passage), both from 1."""
    if file.is_text:
        title = Path(file.name).stem
        text = "\n".join(line for _, line in lines(file))
        for number, content in enumerate(cut(text), 1):
            yield number, Passage(f"{file.name}-{number}", title, content, joined(title, content))
        return
    for number, line in lines(file):
        if line.strip():
            yield number, _passage(file.path, number, line)


def joined(title: str, content: str) -> str:
    """Title and content as one text, as MedRAG joins them."""
    return f"{title}. {content}" if title.strip() else content


def _passage(file: Path, number: int, line: str) -> Passage:
    try:
        row = json.loads(line, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        raise DataError(file, number, "line", line, f"one JSON object a line ({error})") from error
    if not isinstance(row, dict):
        raise DataError(file, number, "line", row, "one JSON object a line")
    for field in ("id", "title", "content"):
        if not isinstance(row.get(field), str) or not (field == "title" or row[field].strip()):
            allowed = "a str, empty where there is none" if field == "title" else "a str that is not empty"
            raise DataError(file, number, field, row.get(field), allowed)
    contents = row.get("contents") or joined(row["title"], row["content"])
    if not isinstance(contents, str):
        raise DataError(file, number, "contents", contents, "a str")
    passage = Passage(row["id"], row["title"], row["content"], contents)
    for field, value in vars(passage).items():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(file, number, field, value, "characters that UTF-8 can write, no half surrogates") from error
    return passage

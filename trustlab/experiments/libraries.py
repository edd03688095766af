"""Which library does MedConf read? Parts of one, several, and as a control the passages of another disease."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from trustlab.knowledge import load_knowledge, normalise
from trustlab.retrieval import BM25, N_BEST, Passage, Retriever, load_corpus, open_retriever
from trustlab.retrieval.files import CorpusPath

MAX_KINDS = 6
"""More kinds of passage than this are titles, not kinds."""
WRONG = "control: passages of another disease"


class WrongPassages:
    """A retriever that answers with passages for another keyword: a control, so that none of them may be a right one.

    For a keyword it searches one of ``keywords`` (default: the names of the knowledge table's conditions), picked by a hash of
    ``seed`` and the keyword, and leaves out every passage that the keyword itself would have found. Where nothing is
    left, the next one in the order of the hash is tried. Raises ``ValueError`` for fewer than two keywords.
    """

    def __init__(self, retriever: Retriever, keywords: Sequence[str] | None = None, seed: int = 0) -> None:
        names = [c.name for c in load_knowledge().conditions.values()] if keywords is None else keywords
        self.keywords = tuple(dict.fromkeys(names))
        if len(self.keywords) < 2:
            raise ValueError(f"keywords must be two or more; received {list(self.keywords)}")
        self.retriever, self.seed = retriever, seed
        listed = hashlib.sha256("\0".join(self.keywords).encode()).hexdigest()[:16]
        self.revision = f"wrong passages (seed={seed} keywords={listed}) of {retriever.revision}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages for another keyword, best first, without those that ``query`` finds among its own ``k``."""
        right = {passage.id for passage in self.retriever.search(query, k)}
        for keyword in sorted(self.keywords, key=lambda word: self._place(query, word)):
            if normalise(keyword) != normalise(query):
                found = [p for p in self.retriever.search(keyword, k + len(right)) if p.id not in right]
                if found:
                    return found[:k]
        return []

    def _place(self, query: str, keyword: str) -> str:
        return hashlib.sha256(f"{self.seed}\0{normalise(query)}\0{keyword}".encode()).hexdigest()


def libraries(corpus: CorpusPath | None = None, corpora: Mapping[str, CorpusPath] | None = None) -> dict[str, Retriever]:
    """Name -> retriever: the ``whole`` of ``corpus`` (default: our own), its kinds of passage, ``corpora``, the control.

    A kind is what stands after the colon in a passage's title ("Influenza: look-alikes"), where all titles have
    one and they are few. Raises ``ValueError`` where a name of ``corpora`` is taken already; else as ``open_retriever``.
    """
    whole = open_retriever(corpus)
    found: dict[str, Retriever] = {"whole": whole}
    if isinstance(whole, BM25):
        found |= {f"only {kind}": BM25(part) for kind, part in kinds(load_corpus(corpus)).items()}
    for name, path in (corpora or {}).items():
        if name in found or name == WRONG:
            raise ValueError(f"corpora has {name!r}, which is taken; taken are {[*found, WRONG]}")
        found[name] = open_retriever(path)
    return found | {WRONG: WrongPassages(whole)}


def kinds(passages: Sequence[Passage]) -> dict[str, list[Passage]]:
    """Kind -> its passages, in order of appearance; none where a title names no kind, or there are one or too many."""
    parts: dict[str, list[Passage]] = {}
    for passage in passages:
        _, colon, kind = passage.title.rpartition(": ")
        if not colon:
            return {}
        parts.setdefault(kind, []).append(passage)
    return parts if 1 < len(parts) <= MAX_KINDS else {}

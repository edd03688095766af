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
    """A retriever that answers with passages for another disease: a control, so that none of them may be a right one.

    For a keyword it searches one of ``keywords`` (default: the names of the knowledge table's conditions) that names another
    condition, picked by a hash of ``seed`` and the keyword. It leaves out every passage that the keyword itself would have
    found, and every one whose title names the keyword's condition, by whatever synonym. Where nothing is left, the next
    in the order of the hash is tried. Raises ``ValueError`` for fewer than two keywords.
    """

    def __init__(
        self, retriever: Retriever, keywords: Sequence[str] | None = None, seed: int = 0
    ) -> None:
        names = (
            [c.name for c in load_knowledge().conditions.values()] if keywords is None else keywords
        )
        self.keywords = tuple(dict.fromkeys(names))
        if len(self.keywords) < 2:
            raise ValueError(f"keywords must be two or more; received {list(self.keywords)}")
        self.retriever, self.seed = retriever, seed
        listed = hashlib.sha256("\0".join(self.keywords).encode()).hexdigest()[:16]
        self.revision = f"wrong passages (seed={seed} keywords={listed}) of {retriever.revision}"

    def search(self, query: str, k: int = N_BEST) -> list[Passage]:
        """The ``k`` best passages for another keyword, best first, without those that ``query`` finds among its own ``k``."""
        right, meant = {passage.id for passage in self.retriever.search(query, k)}, _meant(query)
        for keyword in sorted(self.keywords, key=lambda word: self._place(query, word)):
            if _meant(keyword) != meant and (found := self._others(keyword, k, right, meant)):
                return found
        return []

    def _others(self, keyword: str, k: int, right: set[str], meant: str) -> list[Passage]:
        """The ``k`` best for ``keyword`` that are not ``right`` and whose title does not name what is ``meant``."""
        n = k + len(right)
        while True:
            found = self.retriever.search(keyword, n)
            others = [
                p
                for p in found
                if p.id not in right and meant not in (_meant(p.title), _meant(_subject(p.title)))
            ]
            if len(others) >= k or len(found) < n:
                return others[:k]
            n *= 2

    def _place(self, query: str, keyword: str) -> str:
        return hashlib.sha256(f"{self.seed}\0{normalise(query)}\0{keyword}".encode()).hexdigest()


def _meant(name: str) -> str:
    """The id of the condition that ``name`` stands for, as the knowledge table has it; else its words, normalised."""
    condition = load_knowledge().condition_named(name)
    return condition.id if condition else normalise(name)


def _subject(title: str) -> str:
    """What stands before the colon of a passage's title: "Influenza" of "Influenza: look-alikes"."""
    return title.rpartition(": ")[0]


def libraries(
    corpus: CorpusPath | None = None, corpora: Mapping[str, CorpusPath] | None = None
) -> dict[str, Retriever]:
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

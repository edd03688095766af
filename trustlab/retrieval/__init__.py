"""Passages of a medical library, and finding the ones that a query asks for."""

from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, Retriever, terms
from trustlab.retrieval.corpus import Passage, load_corpus
from trustlab.retrieval.disk_index import BM25S, open_retriever

__all__ = [
    "BM25",
    "BM25S",
    "B",
    "K1",
    "N_BEST",
    "Passage",
    "Retriever",
    "load_corpus",
    "open_retriever",
    "terms",
]

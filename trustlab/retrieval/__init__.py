"""Passages of a medical library, and finding the ones that a query asks for."""

from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, Retriever, terms
from trustlab.retrieval.corpus import Passage, load_corpus

__all__ = ["BM25", "B", "K1", "N_BEST", "Passage", "Retriever", "load_corpus", "terms"]

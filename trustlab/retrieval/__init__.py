"""Finds passages of a medical library."""

from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, Passage, Retriever, terms

__all__ = ["BM25", "B", "K1", "N_BEST", "Passage", "Retriever", "terms"]

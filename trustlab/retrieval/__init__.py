"""Passages of a medical library, and finding the ones that a query asks for."""

from trustlab.retrieval.bm25 import BM25, K1, N_BEST, B, Retriever
from trustlab.retrieval.corpus import Passage, load_corpus
from trustlab.retrieval.index import BM25S
from trustlab.retrieval.opening import open_retriever
from trustlab.retrieval.words import terms

__all__ = ["BM25", "BM25S", "B", "K1", "N_BEST", "Passage", "Retriever", "load_corpus", "open_retriever", "terms"]

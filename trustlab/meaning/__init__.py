"""Finds what words mean: sentence vectors, entailment, relevance."""

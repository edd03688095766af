"""What words mean: sentence vectors, entailment, relevance of tokens."""

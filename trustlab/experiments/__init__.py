"""The experiments: each asks, scores, and gives tidy tables; and the runner of their notebooks."""

"""Shows finished runs: figures, pages, comparisons, the paper's tables beside ours."""

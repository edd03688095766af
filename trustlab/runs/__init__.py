"""Makes a run: asks, reads, grades, scores, measures, and keeps it in a folder."""

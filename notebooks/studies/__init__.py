"""One file for each notebook, of the same name: what it asks, measures and shows."""

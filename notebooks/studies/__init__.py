"""One file for each notebook, of the same name: what it asks, measures and shows; and what the
command line adds: a plan, the score of replies that one has, and runs side by side."""

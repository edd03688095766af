"""One file for each notebook, of the same name: what it asks, measures and shows; and what the
command line adds: a plan, and the score of replies that one has."""

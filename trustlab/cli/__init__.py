"""The command line, what a run would cost, and the runner of notebooks."""

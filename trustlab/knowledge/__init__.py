"""Changes what is told, and checks that it still says the same."""

"""What is told, changed; and whether it still says the same."""

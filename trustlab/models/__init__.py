"""Asks models: what each can do, its kept replies; backends in server/ and local/."""

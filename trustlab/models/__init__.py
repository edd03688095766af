"""Asks models: what each can do, backends for servers and local ones, their replies."""

"""Asks models: what every model can do, backends for servers and local ones, and their replies."""

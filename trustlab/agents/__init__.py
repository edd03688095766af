"""Agents: procedures that ask a model several things in a row."""

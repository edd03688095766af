"""Agents ask a model several things in a row."""

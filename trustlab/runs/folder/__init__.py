"""Keeps a run in a folder: its tables, its records, every reply."""

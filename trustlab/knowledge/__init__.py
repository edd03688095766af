"""Holds what is known beforehand: the table of findings, names of diseases, words, sentences."""

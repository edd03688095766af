"""Asks a model behind a server of OpenAI's form, by calls or by files."""

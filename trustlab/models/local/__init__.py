"""Asks a causal language model that lies on a disk, or comes from the hub."""

"""Agents: procedures that ask a model several things in a row."""

from trustlab.agents.medconf import MedConf, assess

__all__ = ["MedConf", "assess"]

"""Agents: procedures that ask a model several things in a row."""

from trustlab.agents.medconf import MedConf, assess
from trustlab.agents.rephrase import Rephrased, rephrase

__all__ = ["MedConf", "Rephrased", "assess", "rephrase"]

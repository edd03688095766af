"""Agents: procedures that ask a model several things in a row."""

from trustlab.agents.consultation import Consultation, consult, turn_view
from trustlab.agents.medconf import MedConf, assess
from trustlab.agents.patient import FactPatient, ModelPatient
from trustlab.agents.rephrase import Rephrased, rephrase

__all__ = [
    "Consultation",
    "FactPatient",
    "MedConf",
    "ModelPatient",
    "Rephrased",
    "assess",
    "consult",
    "rephrase",
    "turn_view",
]

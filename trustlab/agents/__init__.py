"""Agents: procedures that ask a model several things in a row."""

from trustlab.agents.consultation import Consultation, consult, turn_view
from trustlab.agents.medconf import MedConf, assess
from trustlab.agents.panel import (
    Doctor,
    Proposed,
    Review,
    convene,
    decide,
    doctors_of,
    in_charge,
    propose,
    review,
)
from trustlab.agents.patient import FactPatient, ModelPatient
from trustlab.agents.rephrase import Rephrased, rephrase

__all__ = [
    "Consultation",
    "Doctor",
    "FactPatient",
    "MedConf",
    "ModelPatient",
    "Proposed",
    "Rephrased",
    "Review",
    "assess",
    "consult",
    "convene",
    "decide",
    "doctors_of",
    "in_charge",
    "propose",
    "rephrase",
    "review",
    "turn_view",
]

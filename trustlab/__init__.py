"""trustlab: when may a medical language model's answer be trusted, and how sure is it really?

Research only. Not for clinical use.
"""

from trustlab import confidence, metrics
from trustlab.confidence import METHODS
from trustlab.correctness import SynonymGrader
from trustlab.datasets import DataError, load_cases
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.knowledge import load_knowledge
from trustlab.levels import view, views
from trustlab.metrics import metrics_table
from trustlab.models import open_model
from trustlab.models.cache import CachedModel
from trustlab.paths import NOTICE
from trustlab.records import LEVELS, Case, Generation, Reply, Statement, TokenTrace, View
from trustlab.semantics import Encoder

__version__ = "0.1.0"

__all__ = [
    "LEVELS",
    "METHODS",
    "NOTICE",
    "CachedModel",
    "Case",
    "DataError",
    "Encoder",
    "Generation",
    "Reply",
    "Run",
    "Statement",
    "SynonymGrader",
    "TokenTrace",
    "View",
    "benchmark",
    "confidence",
    "load_cases",
    "load_knowledge",
    "metrics",
    "metrics_table",
    "open_model",
    "view",
    "views",
]

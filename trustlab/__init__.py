"""trustlab: when may a medical language model's answer be trusted, and how sure is it really?

Research only. Not for clinical use.
"""

from trustlab import confidence, metrics
from trustlab.agents import MedConf, Rephrased, assess, consult, convene, rephrase
from trustlab.confidence import METHODS, Parameters
from trustlab.datasets import DataError, Read, load_cases, load_sets, read_data
from trustlab.graders import (
    EncoderGrader,
    ExactGrader,
    Grade,
    Grader,
    JudgeGrader,
    SynonymGrader,
    open_grader,
)
from trustlab.knowledge import load_knowledge
from trustlab.levels import view, views
from trustlab.meaning.encoder import Encoder
from trustlab.metrics import metrics_table
from trustlab.metrics.audit import attainable_n, audit_correlations
from trustlab.metrics.paired import best_of_families, compare_methods
from trustlab.metrics.trust_table import trust_indices
from trustlab.models import open_model, open_models
from trustlab.models.cache import CachedModel
from trustlab.paths import NOTICE
from trustlab.records import (
    LEVELS,
    Assessment,
    Case,
    Criterion,
    Evidence,
    Generation,
    Reply,
    Statement,
    TokenTrace,
    View,
)
from trustlab.report import Figures, Report, report
from trustlab.retrieval import BM25, BM25S, load_corpus, open_retriever
from trustlab.run import Run, benchmark
from trustlab.safety.chart import Chart, chart_of
from trustlab.settings import Setup
from trustlab.studies.ablations import ablations
from trustlab.studies.benchmark import grade
from trustlab.studies.consultation import consultations
from trustlab.studies.robustness import robustness
from trustlab.studies.trust_indices import trust

__version__ = "0.1.0"

__all__ = [
    "BM25",
    "BM25S",
    "LEVELS",
    "METHODS",
    "NOTICE",
    "Assessment",
    "CachedModel",
    "Case",
    "Chart",
    "Criterion",
    "DataError",
    "Encoder",
    "EncoderGrader",
    "Evidence",
    "ExactGrader",
    "Figures",
    "Generation",
    "Grade",
    "Grader",
    "JudgeGrader",
    "MedConf",
    "Parameters",
    "Read",
    "Rephrased",
    "Reply",
    "Report",
    "Run",
    "Setup",
    "Statement",
    "SynonymGrader",
    "TokenTrace",
    "View",
    "ablations",
    "assess",
    "attainable_n",
    "audit_correlations",
    "benchmark",
    "best_of_families",
    "chart_of",
    "compare_methods",
    "confidence",
    "consult",
    "consultations",
    "convene",
    "grade",
    "load_cases",
    "load_corpus",
    "load_knowledge",
    "load_sets",
    "metrics",
    "metrics_table",
    "open_grader",
    "open_model",
    "open_models",
    "open_retriever",
    "read_data",
    "rephrase",
    "report",
    "robustness",
    "trust",
    "trust_indices",
    "view",
    "views",
]

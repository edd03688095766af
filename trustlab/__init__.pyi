"""The public names, and where each comes from; the package loads one when it is first asked for."""

from . import confidence, metrics
from .agents.chart import Chart, chart_of
from .agents.consultation import consult
from .agents.medconf import MedConf, assess
from .agents.panel import convene
from .candidates import Choices, choice
from .changes.rephrase import Rephrased, rephrase
from .compare import Comparison, compare_runs
from .confidence import METHODS, Parameters
from .corpora import load_corpus
from .datasets import DataError, Read, load_cases, load_sets, read_data
from .datasets.public_replies import load_replies
from .disk_index import BM25S, open_retriever
from .experiment import benchmark, score
from .folder.saved import load_run
from .formatted import main_table, to_latex
from .graders import (
    EncoderGrader,
    ExactGrader,
    JudgeGrader,
    SynonymGrader,
    open_grader,
)
from .html.pages import show
from .html.prompts import prompts_shown
from .knowledge import load_knowledge
from .levels import view, views
from .meaning.encoder import Encoder
from .measures import best_of_families, compare_methods, metrics_table
from .metrics.trust_table import trust_indices
from .models.by_name import open_model
from .models.cache import CachedModel
from .paths import NOTICE, save_table, use_studies
from .plots.figures import Figures
from .records import (
    LEVELS,
    Assessment,
    Case,
    Criterion,
    Evidence,
    Generation,
    Grade,
    Grader,
    Reply,
    Statement,
    TokenTrace,
    View,
)
from .reporting import Report, report
from .retrieval import BM25
from .run import Run
from .settings import Setup
from .trial import try_model
from .workbench import Workbench, opened

__version__: str
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
    "Choices",
    "Comparison",
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
    "Workbench",
    "assess",
    "benchmark",
    "best_of_families",
    "chart_of",
    "choice",
    "compare_methods",
    "compare_runs",
    "confidence",
    "consult",
    "convene",
    "load_cases",
    "load_corpus",
    "load_knowledge",
    "load_replies",
    "load_run",
    "load_sets",
    "main_table",
    "metrics",
    "metrics_table",
    "open_grader",
    "open_model",
    "open_retriever",
    "opened",
    "prompts_shown",
    "read_data",
    "rephrase",
    "report",
    "save_table",
    "score",
    "show",
    "to_latex",
    "trust_indices",
    "try_model",
    "use_studies",
    "view",
    "views",
]

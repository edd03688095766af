"""The public names, and where each comes from; the package loads one when it is first asked for."""

from . import confidence, metrics
from .agents.consultation import consult
from .agents.medconf import MedConf, assess
from .agents.panel import convene
from .agents.rephrase import Rephrased, rephrase
from .confidence import METHODS, Parameters
from .datasets import DataError, Read, load_cases, load_sets, read_data
from .datasets.foreign_logs import read_log
from .datasets.public_replies import load_replies
from .datasets.replies_file import option_shares
from .graders import (
    EncoderGrader,
    ExactGrader,
    JudgeGrader,
    SynonymGrader,
    open_grader,
)
from .knowledge.chart import Chart, chart_of
from .knowledge.findings import load_knowledge
from .levels import view, views
from .meaning.encoder import Encoder
from .metrics.schema import pick
from .metrics.sets import Sets, conformal_sets
from .metrics.trust_table import trust_indices
from .models.by_name import open_model
from .models.cache import CachedModel
from .paths import NOTICE, save_table, use_studies
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
from .reports.compare import Comparison, compare_runs
from .reports.html.pages import show
from .reports.html.prompts import prompts_shown
from .reports.plots.figures import Figures
from .reports.reporting import Report, report
from .retrieval import BM25
from .retrieval.corpora import load_corpus
from .retrieval.disk_index import BM25S, open_retriever
from .runs.calibrator import Applied, Calibrator, calibrate, load_calibrator
from .runs.candidates import Choices, choice
from .runs.experiment import benchmark, score
from .runs.folder.saved import load_run
from .runs.formatted import main_table, to_latex
from .runs.measures import (
    best_of_families,
    by_group,
    combine,
    compare_methods,
    metrics_table,
)
from .runs.run import Run
from .runs.trial import try_model
from .runs.workbench import Workbench, opened
from .settings import Setup

__version__: str
__all__ = [
    "BM25",
    "BM25S",
    "LEVELS",
    "METHODS",
    "NOTICE",
    "Applied",
    "Assessment",
    "CachedModel",
    "Calibrator",
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
    "Sets",
    "Setup",
    "Statement",
    "SynonymGrader",
    "TokenTrace",
    "View",
    "Workbench",
    "assess",
    "benchmark",
    "best_of_families",
    "by_group",
    "calibrate",
    "chart_of",
    "choice",
    "combine",
    "compare_methods",
    "compare_runs",
    "confidence",
    "conformal_sets",
    "consult",
    "convene",
    "load_calibrator",
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
    "option_shares",
    "pick",
    "prompts_shown",
    "read_data",
    "read_log",
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

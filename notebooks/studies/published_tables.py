"""06: the choices of the notebook on the paper's printed tables."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trustlab.choices import Chance, Count, Seed, choices
from trustlab.settings import Flat, Folder


@choices
class Asked(Flat):
    """The choices of notebook 06."""

    n_points: Annotated[
        int, Field(ge=3, le=7, description="a whole number from 3 to 7")
    ]
    """Information levels that each correlation is taken over."""
    alpha: Chance
    draws: Count
    """Pairs of rising series behind the chance band."""
    seed: Seed
    max_n: Count
    """Largest number of consultations tried."""
    share_right: Chance
    """Of the answers, for the sampling error of an AUROC."""
    auroc_correlation: Annotated[
        float, Field(ge=0, lt=1, description="a number from 0 to below 1")
    ]
    """Of two methods' AUROCs over samples of patients."""
    power: Chance
    run_dir: Folder = None


setup = Asked.of

"""Checks of lesson 7: Shaking it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lesson import exercise, function, missing, number

from trustlab.metrics import cv_group, cv_sample


@exercise("7a")
def variation(answer: Any) -> str:
    slips = {
        20.0: "this divides by J - 1; the formula divides by J",
        math.sqrt(200 / 3): "this is the standard deviation; divide it by the mean",
        10.0: "this is the standard deviation with J - 1; divide by J, then by the mean",
        40.0: "this is the range over the mean; take the standard deviation",
        math.sqrt(2 / 3) / 5: "this is a share; give it in percent",
        200 / 3: "this is the variance; take its root, and divide by the mean",
    }
    return number(answer, 100 * math.sqrt(2 / 3) / 5, slips)


def _slips(table: np.ndarray) -> dict[float, str]:
    means, rows, ids = table.mean(axis=0), table.mean(axis=1), range(len(table))
    return {
        cv_group(table, ids)["value"] / 100: "this is a share; give it in percent",
        100 * means.std(ddof=1) / means.mean(): "this divides by J - 1, not by J",
        100 * rows.std() / rows.mean(): "this goes over patients; average each column",
        cv_sample(table, ids)[
            "value"
        ]: "this is CV sample: first the mean of each telling, then their CV",
    }


@exercise("7b", function=True)
def group(answer: Any) -> str:
    tables = [
        [[0.2, 0.4], [0.8, 0.5]],
        [[0.5, 0.7, 0.3], [0.1, 0.3, 0.2]],
        [[0.4, 0.6]],
    ]
    inputs = [(np.array(table),) for table in tables]
    wrong = function(
        answer, lambda t: cv_group(t, range(len(t)))["value"], inputs, _slips
    )
    return wrong or missing(answer, (np.zeros((2, 2)),), "where the mean is 0")


@exercise("7c")
def cancelled(answer: Any) -> str:
    table = np.array(answer, float)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < 3:
        return "write a list of pairs, one for each of three patients or more"
    if table.min() < 0 or table.max() > 1:
        return "a confidence is a number from 0 to 1"
    if not (table.mean(axis=1) > 0).all():
        return "a patient with the mean 0 has no CV"
    ids = range(len(table))
    group = cv_group(table, ids)["value"]
    if group > 0.01:
        return f"CV group is {group:.2g} %, not 0"
    sample = cv_sample(table, ids)["value"]
    if sample < 50 - 1e-6:
        return f"CV group is 0; CV sample is {sample:.1f} %, less than 50 %"
    return ""

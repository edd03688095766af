"""Checks of lesson 7: Shaking it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from lesson import a_function, a_number, exercise, function, missing, number, table_of

from trustlab.metrics import cv_group, cv_sample


@exercise("7a", a_number)
def variation(answer: float) -> str:
    slips = {
        20.0: "this divides by J - 1; the formula divides by J",
        math.sqrt(200 / 3): "this is the standard deviation; divide it by the mean",
        10.0: "this is the standard deviation with J - 1; divide by J, then by the mean",
        40.0: "this is the range over the mean; take the standard deviation",
        math.sqrt(2 / 3) / 5: "this is a share; give it in percent",
        200 / 3: "this is the variance; take its root, and divide by the mean",
    }
    return number(answer, 100 * math.sqrt(2 / 3) / 5, slips)


def _cv_group(table: np.ndarray) -> float:
    return cv_group(table, range(len(table)))["value"]


def _slips(table: np.ndarray) -> dict[float, str]:
    means, rows = table.mean(axis=0), table.mean(axis=1)
    sample = cv_sample(table, range(len(table)))["value"]
    middles = np.median(table, axis=0)
    return {
        _cv_group(table) / 100: "this is a share; give it in percent",
        100 * means.std(ddof=1) / means.mean(): "this divides by J - 1, not by J",
        100 * rows.std() / rows.mean(): "this goes over patients; average each column",
        100
        * middles.std()
        / middles.mean(): "take the mean of each telling, not its median",
        100
        * table.std()
        / table.mean(): "this is over all values; first the mean of each telling",
        sample: "this is CV sample: first the mean of each telling, then their CV",
    }


@exercise("7b", a_function())
def group(answer: Callable[..., float]) -> str:
    tables = [
        [[0.2, 0.4], [0.8, 0.5], [0.3, 0.9]],
        [[0.5, 0.7, 0.3], [0.1, 0.3, 0.2], [0.9, 0.2, 0.6], [0.4, 0.4, 0.8]],
        [[0.4, 0.6]],
        [[0.0, 0.0], [0.3, 0.7]],
    ]
    inputs = [(np.array(table),) for table in tables]
    wrong = function(answer, _cv_group, inputs, _slips)
    return wrong or missing(answer, (np.zeros((2, 2)),), "where the mean is 0")


@exercise("7c", table_of("first, second"))
def cancelled(answer: np.ndarray) -> str:
    if len(answer) < 3:
        return "write a list of pairs, one for each of three patients or more"
    if answer.min() < 0 or answer.max() > 1:
        return "a confidence is a number from 0 to 1"
    if not (answer.mean(axis=1) > 0).all():
        return "a patient with the mean 0 has no CV"
    of_group = _cv_group(answer)
    if of_group > 0.01:
        return f"CV group is {of_group:.2g} %, not 0"
    sample = cv_sample(answer, range(len(answer)))["value"]
    if sample < 50 - 1e-6:
        return f"CV group is 0; CV sample is {sample:.1f} %, less than 50 %"
    return ""

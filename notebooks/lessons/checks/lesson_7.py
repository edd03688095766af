"""Checks of lesson 7: Shaking it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lesson import exercise, number

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


@exercise("7b")
def group(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    tables = [[[0.2, 0.4], [0.8, 0.5]], [[0.5, 0.7, 0.3], [0.1, 0.3, 0.2]], [[0.4, 0.6]]]
    for table in map(np.array, tables):
        found, ids = answer(table), range(len(table))
        if found is None or found is ...:
            return "it returns nothing yet"
        right, sample = cv_group(table, ids)["value"], cv_sample(table, ids)["value"]
        means = table.mean(axis=0)
        slips = {right / 100: "this is a share; give it in percent"}
        slips[100 * means.std(ddof=1) / means.mean()] = "this divides by J - 1, not by J"
        rows = table.mean(axis=1)
        slips[100 * rows.std() / rows.mean()] = "this goes over patients; average each column"
        slips.pop(right, None)
        if not math.isclose(right, sample):
            slips[sample] = "this is CV sample: first the mean of each telling, then their CV"
        if wrong := number(found, right, slips):
            return f"for {table.tolist()}: {wrong}"
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = answer(np.zeros((2, 2)))
    except ZeroDivisionError:
        return "where the mean is 0 it divides by zero; return nan there"
    if found is None or not math.isnan(found):
        return f"where the mean is 0 it says {found}; there is no CV then"
    return ""


@exercise("7c")
def cancelled(answer: Any) -> str:
    form = "write a list of pairs, one for each patient: [(first, second), ...]"
    try:
        table = np.array([tuple(row) for row in answer], float)
    except (TypeError, ValueError):
        return form
    if table.ndim != 2 or table.shape[1] != 2:
        return form
    if len(table) < 3:
        return f"at least three patients are needed; these are {len(table)}"
    if table.min() < 0 or table.max() > 1:
        return "a confidence is a number from 0 to 1"
    if not (table.mean(axis=1) > 0).all():
        return "a patient with the mean 0 has no CV"
    ids = range(len(table))
    if (found := cv_group(table, ids)["value"]) > 0.01:
        return f"CV group is {found:.2g} %, not 0"
    if (found := cv_sample(table, ids)["value"]) < 50 - 1e-6:
        return f"CV group is 0; CV sample is {found:.1f} %, less than 50 %"
    return ""

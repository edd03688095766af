"""No run is believed that was not read: counts and denominators."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import ask
from fake_model import FakeModel, made_cases
from made_reviews import many_cases

import trustlab as tl
from trustlab.html.opening import accuracies
from trustlab.metrics.trust_table import trust_indices
from trustlab.models.base import Request
from trustlab.parsing.counts import percent, too_few, why_few
from trustlab.records import Reply
from trustlab.run import load_run

METHODS = ["ce", "poc", "word_count"]
LEVELS = [20, 60, 100]
pytestmark = pytest.mark.filterwarnings("ignore:.*could not be read")


class Manner(FakeModel):
    """``plain``: as asked. ``chatty``: in prose with bold names; one diagnosis of four and three
    scores of four cannot be read. ``cut``: every reply runs out of tokens."""

    def reply(self, request: Request, i: int) -> Reply:
        found = super().reply(request, i)
        if self.name == "cut":
            return replace(found, finish="length")
        if self.name == "plain":
            return found
        of_four, said = int(self.rng(request, i + 1000).random() * 4), str(found.text).strip("[]")
        text = {
            "diagnosis": "Hard to say." if of_four == 0 else f"Most likely it is **{said}**",
            "samples": f"**{said}**",
            "ce": f"Confidence: {said}" if of_four == 0 else "Rather sure.",
        }[request.purpose]
        return replace(found, text=text, trace=None)


def counts(run: tl.Run) -> dict[str, dict[str, int]]:
    (found,) = run.parameters["replies_read"].values()
    return found


def test_what_is_not_read_enough_is_not_claimed_and_the_rest_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="replies to 'ce' could not be read; nothing is claimed"):
        how = {"samples": 3, "run_dir": tmp_path}
        run: Any = ask(tl.benchmark, made_cases(12), [Manner("chatty")], METHODS, LEVELS, **how)
    n = counts(run)
    assert n["diagnosis"]["chat"] == n["diagnosis"]["read"] > 0.5 * n["diagnosis"]["asked"]
    assert 0 < n["ce"]["read"] < 0.5 * n["ce"]["asked"]
    why = f"only {n['ce']['read']} of {n['ce']['asked']} replies to 'ce' could be read"
    table = tl.metrics_table(load_run(tmp_path), n_draws=10, min_per_class=1)
    ce = table[table["method"].eq("ce")]
    assert ce["value"].isna().all() and ce["missing"].str.contains(why, regex=False).all()
    assert table.loc[table["method"].eq("poc"), "value"].notna().any()
    pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
    assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_asked", "n"] == 36
    read = pooled.loc["accuracy_read"]
    assert read["n"] == n["diagnosis"]["read"]
    right = float(pooled["value"]["accuracy"])
    assert read["value"] * read["n"] == pytest.approx(right * 36)


def test_a_cut_reply_counts_among_those_asked_for_alone() -> None:
    class Halves(Manner):
        def reply(self, request, i):
            self.name = "cut" if int(self.rng(request, i).integers(3)) == 0 else "plain"
            found = super().reply(request, i)
            self.name = "plain"
            return found

    run: Any = ask(tl.benchmark, made_cases(12), [Halves("plain")], ["poc"], LEVELS, samples=3)
    table = tl.metrics_table(run, n_draws=10)
    pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
    n_cut = counts(run)["diagnosis"]["cut"]
    assert 0 < n_cut < 18 and pooled.loc["accuracy_asked", "n"] == 36
    assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_read", "n"] == 36 - n_cut
    right = run.answers["correct"].sum()
    shares = [right / (36 - n_cut), right / 36, right / (36 - n_cut)]
    names = ["accuracy", "accuracy_asked", "accuracy_read"]
    assert pooled["value"].to_dict() == dict(zip(names, shares, strict=True))
    (line,) = accuracies(run.answers)
    assert f"of 36 asked, {percent(int(right), 36 - n_cut)} of {36 - n_cut} not cut" in line


def test_half_is_enough_and_others_answer_in_a_model_s_place() -> None:
    def n(read: int, asked: int) -> dict[str, int]:
        return {"asked": asked, "read": read, "unread": asked - read}

    found = {"a": {"diagnosis": n(5, 10), "ce": n(4, 10)}, "b": {"doctor": n(1, 3)}}
    assert set(too_few(found)) == {("a", "ce"), ("b", "doctor")}
    assert why_few(found, "a", ["diagnosis"]) == ""
    assert why_few(found, "a", ["diagnosis", "ce"]).startswith("only 4 of 10")
    assert why_few(found, "a", ["doctor"]) == "only 1 of 3 replies to 'doctor' could be read"
    assert why_few(found, "b", ["ce"]).startswith("only 4 of 10")
    shares = [percent(*of) for of in ((1, 2000), (0, 9), (9, 9), (1999, 2000), (98, 100))]
    assert shares == ["0.1 %", "0 %", "100 %", "99.9 %", "98 %"]


def test_indices_of_reviewers_that_cannot_be_read_have_the_reason() -> None:
    why = "only 1 of 9 replies to 'plan' could be read"
    table: Any = many_cases(12)
    safe = table["safety"].astype(bool)
    rated = [c for c in table if c.startswith("n_") and c not in ("n_doctors", "n_no_answer")]
    table = table.assign(plan_missing=why, unread=why, **dict.fromkeys(rated, 0))
    found = trust_indices(table, draws=0)
    osi = found[found["metric"].eq("osi") & found["safety"].astype(bool)]
    assert safe.any() and osi["value"].isna().all() and osi["missing"].eq(why).all()
    assert Counter(found.loc[found["metric"].eq("accuracy"), "missing"])[why] == 0

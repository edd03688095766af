"""Replies that somebody has already: what a table may hold, and a run's own numbers from them."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from fake_model import FakeEncoder, FakeModel
from saying import saying, says
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli.commands import app
from trustlab.datasets.replies_file import COLUMNS
from trustlab.parsing.reply import no_answer
from trustlab.paths import DATA, save_table
from trustlab.records import Generation, TokenTrace
from trustlab.runs.folder.saved import read_table as run_table
from trustlab.runs.folder.saved import save_run
from trustlab.settings import Setup

ROW: dict[str, Any] = {"case_id": "a", "truth": "Influenza", "answer": "Influenza"}
QUIET: dict[str, Any] = {"cache": ":memory:", "quiet": True, "grader": "exact"}
QUIET["encoder"] = FakeEncoder()


def scored(*rows: dict[str, Any], methods: Any = ("asp", "poc", "ce"), **more: Any) -> tl.Run:
    return tl.score(pd.DataFrame(rows), methods, Setup(**QUIET), **more)


def value(run: tl.Run, method: str, row: int = 0) -> float:
    return float(run.confidence.query("method == @method")["confidence"].iloc[row])


def reason(run: tl.Run, method: str) -> str:
    return str(run.confidence.query("method == @method")["missing"].iloc[0])


@pytest.fixture(scope="module")
def asked() -> tl.Run:
    cases = tl.load_cases("starter", n=2)
    every = ["all", "later"]
    return tl.benchmark(cases, [FakeModel()], every, [20, 100], Setup(samples=4, **QUIET))


FROM_ELSEWHERE = {"agreement", "rdc"}
"""What reads a panel: none is in a table of replies."""


def cells(g: Generation) -> dict[str, Any]:
    """What a table of replies holds of an answer beyond a run's own columns."""
    found: dict[str, Any] = {"n_total": g.n_total, "patient": g.told}
    if trace := g.answer and g.answer.trace:
        found |= {name: getattr(trace, name).tolist() for name in TokenTrace.ARRAYS}
        found |= {"tokens": list(trace.tokens), "bounds": json.dumps(dict(trace.bounds))}
        found["alternatives"] = json.dumps(trace.alternatives)
    samples = g.samples or ()
    traces = [s.trace or TokenTrace((), np.zeros(0)) for s in samples]
    found["samples"] = [s.text for s in samples]
    found["sample_tokens"] = [list(t.tokens) or None for t in traces]
    found["sample_logprobs"] = [t.logprobs.tolist() or None for t in traces]  # type: ignore
    for name, replies in g.probes.items():
        texts = [None if no_answer(replace(r, text=r.raw)) else r.raw for r in replies]
        found[name] = texts if name == "p_true" else texts[0]
    if g.assessment is not None and g.assessment.evidence:
        rows = [
            {**asdict(e.criterion), "support_level": e.support_level, "evidence": e.quote}
            for e in g.assessment.evidence
        ]
        found |= {"medconf": g.assessment.score, "evidence": json.dumps(rows)}
    return found


@each("kind", ["frame", "jsonl", "parquet", "csv"])
def test_a_run_s_replies_give_its_confidences_again(kind, asked, tmp_path):
    pairs = zip(asked.answers.to_dict("records"), asked.generations, strict=True)
    table = pd.DataFrame([row | cells(g) for row, g in pairs])
    table = table[[name for name in COLUMNS if name in table and table[name].notna().any()]]
    replies: Any = table
    if kind == "jsonl":
        replies = tmp_path / "r.jsonl"
        table.to_json(replies, orient="records", lines=True, double_precision=15)
    elif kind != "frame":
        replies = tmp_path / f"r.{kind}"
        lists = [c for c in table if table[c].map(lambda v: isinstance(v, list)).any()]
        if kind == "csv":
            table = table.assign(**{c: table[c].map(json.dumps) for c in lists})
        save_table(table, replies)
    again = tl.score(replies, ["all", "later"], Setup(samples=4, **QUIET))
    keys = ["case_id", "dataset", "level", "model", "method"]
    assert again.confidence[keys].equals(asked.confidence[keys])
    pd.testing.assert_frame_equal(again.answers, asked.answers, check_dtype=kind == "frame")
    theirs, mine = (run.confidence.set_index("method") for run in (asked, again))
    there = ~theirs.index.isin(list(FROM_ELSEWHERE))
    np.testing.assert_allclose(mine["confidence"][there], theirs["confidence"][there], atol=1e-9)
    assert mine["bound"][there].equals(theirs["bound"][there])
    assert theirs["confidence"][there].notna().mean() > 0.9
    for method in FROM_ELSEWHERE:
        assert mine.loc[method, "confidence"].isna().all()  # type: ignore[union-attr]
        assert says(reason(again, method), "table", "no")


def test_a_run_s_own_tables_come_out_the_same(asked, tmp_path):
    few = asked.confidence[asked.confidence["method"].isin(["asp", "poc", "ce"])]
    again = tl.score(asked.answers, confidence=few.reset_index(drop=True))
    pd.testing.assert_frame_equal(again.answers, asked.answers)
    save_run(again, tmp_path / "run")
    words = ["score", str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    for name in ("answers", "confidence"):
        files = (tmp_path / folder / f"{name}.csv" for folder in ("run", "out"))
        assert len({file.read_bytes() for file in files}) == 1
    kept = pd.read_csv(tmp_path / "out" / "metrics.csv")
    ours = tl.metrics_table(again)
    assert len(kept) == len(ours) and "toprule" in (tmp_path / "out" / "main.tex").read_text()


def test_by_hand():
    more = {"logprobs": [-0.5, -1.0], "samples": ["Influenza", "influenza", "Asthma"], "ce": 80}
    run = scored(ROW | more)
    assert value(run, "asp") == pytest.approx((np.exp(-0.5) + np.exp(-1)) / 2)
    assert value(run, "poc") == pytest.approx(2 / 3)
    assert value(run, "ce") == 0.8
    told = run.answers[["level", "dataset", "model", "correct"]].values.tolist()
    assert told == [[100, "table", "model", 1]]
    assert run.answers[["n_statements", "n_words"]].isna().all().all()
    gaps = {"samples": ["Influenza", None, "Influenza"], "p_true": [True, None, False, "True"]}
    odd = {"case_id": 7.0, "logprobs": [-0.5, 1e-9]}  # numbers as other programs write them
    run = scored(ROW | gaps | odd, methods=["poc", "p_true", "msp"])
    assert value(run, "poc") == 1 and value(run, "p_true") == pytest.approx(2 / 3)
    assert run.answers["n_samples"].tolist() == [2] and run.answers["case_id"].tolist() == ["7"]
    assert value(run, "msp") == 1.0


def test_what_is_absent_is_missing_with_its_reason():
    with pytest.warns(UserWarning, match="columns that are not read: logprob$"):
        scored(ROW | {"logprob": [-1.0]})
    run = scored(ROW, ROW | {"case_id": "b", "logprobs": [-1.0]}, methods="variants")
    assert says(reason(run, "asp"), "logprobs", "empty")
    assert says(reason(run, "poc"), "no samples")
    assert says(reason(run, "ce"), "no ce")
    assert says(reason(run, "word_count"), "words")
    assert not run.confidence.query("method == 'ccp'")["confidence"].notna().any()
    assert value(run, "asp", 1) == pytest.approx(np.exp(-1))


def test_verdicts_are_the_row_s_own_else_the_grader_s():
    known = [ROW | {"correct": 0}, ROW | {"answer": "influenza."}, ROW | {"answer": None}]
    known += [ROW | {"answer": None, "missing": "server gone"}, ROW | {"answer": "Asthma"}]
    known += [ROW | {"missing": "nobody could say"}]
    rows = [row | {"case_id": str(i)} for i, row in enumerate(known)]
    answers = scored(*rows).answers
    assert answers["correct"].fillna(-1).tolist() == [0, 1, 0, -1, 0, -1]
    assert answers["missing"].tolist()[3:] == ["server gone", "", "nobody could say"]
    assert answers["correct"].isna().sum() == 2


@each("told", ["True;FALSE;1;0.0", '[1, 0, "true", "0"]', "1;0;nan;x"])
def test_lists_in_cells_are_json_or_have_semicolons_between(told, tmp_path):
    lists = {"logprobs": "-0.5; -1", "samples": "Influenza; Asthma", "p_true": told}
    as_json = {"case_id": "b", "logprobs": "[-0.5, -1]"}
    save_table(pd.DataFrame([ROW | lists, ROW | as_json]), tmp_path / "r.csv")
    run = tl.score(tmp_path / "r.csv", ["asp", "poc", "p_true"], Setup(**QUIET))
    assert value(run, "asp", 0) == value(run, "asp", 1) > 0
    assert value(run, "poc") == value(run, "p_true") == 0.5


@each("mark", ["</s>", "<|im_end|>", " [/INST] [Asthma]", "<end_of_turn>\n", "<|eot_id|>[50]"])
def test_a_template_s_marks_are_no_part_of_a_reply(mark):
    replies = {"answer": f"Influenza{mark}", "ce": f"80{mark}"}
    replies |= {"samples": json.dumps([f"influenza{mark}", "Influenza"])}
    replies["p_true"] = json.dumps(["True", f"False{mark}"])
    run = scored(ROW | replies, methods=["ce", "p_true", "poc"])
    assert run.answers["answer"][0] == "Influenza" and run.answers["correct"][0] == 1
    assert [value(run, name) for name in ("ce", "p_true", "poc")] == [0.8, 0.5, 1]


def test_thought_is_no_part_of_a_cell_and_a_citation_none_of_an_answer():
    thought = "<think>Perhaps [60].</think> "
    replies = {
        "answer": f"{thought}Influenza [1]",
        "ce": f"{thought}Sure.",
        "cot_ce": f"{thought}[85]",
    }
    replies["samples"] = ["Influenza [1]", "Influenza ([cdc.gov](https://cdc.gov/x))"]
    run = scored(ROW | replies, methods=["ce", "cot_ce", "poc"])
    assert run.answers["answer"][0] == "Influenza" and value(run, "poc") == 1
    assert reason(run, "ce").startswith("no single number") and value(run, "cot_ce") == 0.85


@each(
    "said", ["85 [2]", "I'm 85 % sure [2].", "[1] CDC. Confidence: 85", "eighty-five percent [2]"]
)
def test_a_footnote_s_number_is_no_score(said):
    run = scored(ROW | {"ce": said, "cot_ce": said}, methods=["ce", "cot_ce"])
    assert run.confidence["confidence"].isna().all()


@each("word", ["NaN", "None", "N/A", "<NA>", "null", "-", pd.NA])
def test_a_word_for_an_empty_cell_is_no_truth_and_no_value(word):
    with pytest.raises(tl.DataError, match=saying("row 1", "truth", "name")):
        scored(ROW | {"truth": word, "answer": "nan" if word is pd.NA else word})
    if word is pd.NA or word != "-":
        run = scored(ROW, ROW | {"case_id": "NA", "ce": word, "missing": word, "level": word})
        assert run.answers["case_id"].tolist() == ["a", "NA"] and run.answers["correct"].all()
        assert says(reason(run, "ce"), "ce") and re.search("no ce|empty", reason(run, "ce"))


RATED = [("strong", "supported"), ("weak", "missing"), ("moderate", "contradicted")]
EVIDENCE = [{"importance": i, "support_level": s} for i, s in RATED]


@each("told", [EVIDENCE, json.dumps(EVIDENCE)])
def test_a_table_of_evidence_gives_medconf_by_fixed_weights(told):
    run = scored(ROW | {"evidence": told}, methods=["medconf", "medconf_weighted"])
    assert value(run, "medconf_weighted") == pytest.approx((3 - 2) / (3 + 1 + 2))
    assert says(reason(run, "medconf"), "no medconf")
    assert reason(scored(ROW | {"medconf": 5}, methods="medconf_weighted"), "medconf_weighted")


ODD = ["=1+1", "+1 x", "-ve", "@a", "\t=x", "'=x", "''-y", "'quoted'", "-0.5 [-1, 0]", "–", ""]
ODD += ["-5"]


def test_text_that_a_spreadsheet_would_compute_is_marked_and_read_back(tmp_path):
    table = pd.DataFrame({"case_id": [f"{i}" for i in range(len(ODD))], "answer": ODD, "=x": -1.5})
    save_table(table, tmp_path / "t.csv")
    plain = pd.read_csv(tmp_path / "t.csv", keep_default_na=False, dtype={"answer": str})
    assert list(plain)[2] == "'=x" and plain["'=x"].eq(-1.5).all()
    for cell in plain["answer"]:
        assert cell[:1] not in ("=", "+", "@", "\t") and (cell[:1] != "-" or cell[1].isdigit())
    assert plain["answer"].tolist()[-5:] == ODD[-5:]
    assert run_table(tmp_path / "t.csv")["answer"].fillna("").tolist() == ODD
    rows = [{"case_id": "a", "answer": text, "truth": "x", "model": text} for text in ODD if text]
    save_table(pd.DataFrame(rows), tmp_path / "r.csv")
    answers = tl.score(tmp_path / "r.csv", "ce", Setup(**QUIET)).answers
    assert answers["model"].tolist() == [text.strip() for text in ODD if text]


BAD = {
    "a row twice": ([ROW, ROW], "row 2", ("once", "row 1")),
    "no verdict": ([ROW | {"truth": None}, ROW | {"case_id": "b"}], "truth", "why"),
    "level": ([ROW | {"level": 0}], ("level", 0), "1 to 100"),
    "positive": ([ROW | {"logprobs": [-1.0, 0.5]}], "logprobs", "at most 0"),
    "no numbers": ([ROW | {"logprobs": "high"}], "logprobs: received 'high'", "at most 0"),
    "no entropy": ([ROW | {"entropies": [-9999.0]}], "entropies: received [-9999.0]", "from 0"),
    "infinite entropy": ([ROW | {"entropies": "inf;1"}], "entropies: received 'inf;1'", "16.6"),
    "no null for one": ([ROW | {"entropies": [None, 1]}], "entropies: received", "from 0"),
    "Rényi": ([ROW | {"renyi": [-0.5]}], "renyi: received [-0.5]", "0 to ln"),
    "far too far": ([ROW | {"renyi": [9999.0]}], "renyi: received [9999.0]", "16.6"),
    "Fisher-Rao": ([ROW | {"fisher_rao": [0.2, 1.0]}], "fisher_rao", "below 1"),
    "Fisher-Rao below 0": ([ROW | {"fisher_rao": "-0.2"}], "fisher_rao", "below 1"),
    "a likely sample": ([ROW | {"samples": ["a"], "sample_logprobs": [[0.1]]}], "at most 0"),
    "alternatives over 1": (
        [ROW | {"tokens": ["a"], "logprobs": [-0.1], "alternatives": [[["a", -0.1], ["b", -0.1]]]}],
        "alternatives: received", "at most 1",
    ),
    "names between bars": ([ROW | {"accepted": "Flu|Grippe"}], "accepted: received", "without |"),
    "a bar in a list": ([ROW | {"accepted": ["Flu", "Grippe|flu"]}], "accepted", "without |"),
    "names on lines": ([ROW | {"accepted": "Flu\nGrippe"}], "accepted: received", "semicolons"),
    "two truths": ([ROW, ROW | {"case_id": "b", "truth": "Flu|Cold"}], "row 2", "truth: received"),
    "a truth on two lines": ([ROW | {"truth": "Flu\rCold"}], "truth: received", "on one line"),
    "samples between bars": ([ROW | {"samples": "Flu|Cold|Flu"}], "samples", "semicolons between"),
    "samples on lines": ([ROW | {"samples": "Flu\nCold"}], "samples: received", "semicolons"),
    "a sample on two lines": ([ROW | {"samples": ["Flu\u2028Cold"]}], "samples", "on one line"),
    "a whole reply": ([ROW | {"answer": "Flu\n\nIt began at night."}], "answer", "on one line"),
    "lengths": ([ROW | {"tokens": ["a"], "logprobs": [-1.0, -2.0]}], "1 tokens", "as many"),
    "score": ([ROW | {"ce": 101}], "ce: received 101", "0 to 100"),
    "negative": ([ROW | {"medconf": -0.5}], "medconf: received -0.5", "0 to 100"),
    "four guesses": ([ROW | {"topk_ce": [1, 2, 3, 4]}], "topk_ce", "five numbers"),
    "correct": ([ROW | {"correct": "perhaps"}], "correct: received 'perhaps'", "true or false"),
    "flag for a number": ([ROW | {"medconf": True}], "medconf: received True", "0 to 100"),
    "samples alone": ([ROW | {"sample_logprobs": [[-1.0]]}], "samples", "beside their tokens"),
    "too few": ([ROW | {"samples": ["a"], "sample_logprobs": [[-1.0]] * 2}], "2 lists", "each of"),
    "alternatives": ([ROW | {"alternatives": [[["a", -1.0]]]}], "alternatives", "beside them"),
    "bounds": ([ROW | {"bounds": {"entropies": "left"}}], "bounds", "lower"),
    "no answers": ([{"case_id": "a", "truth": "x"}], "columns", "answer among them"),
    "no truth": ([{"case_id": "a", "answer": "x"}], "columns", ("truth", "correct")),
    "shares": ([ROW | {"ce": 0.9}, ROW | {"case_id": "b", "ce": 1}], "ce: received", "percent"),
    "right without an answer": ([ROW | {"answer": None, "correct": 1}], "correct", "no answer"),
    "evidence": ([ROW | {"evidence": [{"importance": "huge"}]}], "evidence: received", "strong"),
    "no rows": ([], "rows: received 'none'", "answer"),
}  # fmt: skip


@each("name", BAD)
def test_bad_rows_name_place_value_and_what_is_allowed(name):
    rows, *words = BAD[name]
    with pytest.raises(tl.DataError) as raised:
        scored(*rows)
    assert says(raised.value, *words)


SHARES: dict[str, list[Any]] = {
    "ce": [0.8, "0.9", "[0.95]", "I'd say [1]."],
    "cot_ce": ["It fits after 3 days: [0.8]", "0.9 or so", "It is clear. [0.7]", None],
    "topk_ce": [[0.8, 0.9, 0.7, 0.8, 0.6], "0.8;0.9;0.7;0.8;0.6", "[0.8, 0.9, 0.7, 1, 0]"]
    + ["G1: [0.8] G2: [0.9] G3: [0.7] G4: [0.8] G5: [0.6]"],
    "medconf": [0.8, "0.9", 1, 0.7],
}


def each_as_a_row(column: str, cells: list[Any], **more: Any) -> list[dict[str, Any]]:
    return [ROW | {"case_id": f"{i}", column: cell} | more for i, cell in enumerate(cells)]


@each("column", SHARES)
def test_shares_in_a_column_of_percent_are_refused(column):
    only_ones = [[1] * 5, [0] * 5] if column == "topk_ce" else [1, 0, "1"]
    among_others = SHARES[column] + ([[80] * 5] * 2 if column == "topk_ce" else [100, 80])
    for cells in (SHARES[column], only_ones, among_others):
        with pytest.raises(tl.DataError, match=saying(column, "percent", 100)):
            scored(*each_as_a_row(column, cells))
    shared = each_as_a_row(column, SHARES[column], model="b")
    percent = each_as_a_row(column, [[90] * 5 if column == "topk_ce" else 90] * 9, model="a")
    with pytest.raises(tl.DataError, match="shares"):  # of one model among others
        scored(*shared, *percent)


@each(
    ("column", "cells"),
    [
        ("ce", [0, 0, "[0]"]),
        ("ce", [0.5, 80, "[95]"]),
        ("cot_ce", ["After 0.5 days: [80]", "It is 0.9 cm wide. [70]"]),
        ("topk_ce", [[80, 10, 5, 2, 0.5]]),
        ("medconf", [100, 1]),
    ],
)
def test_percent_are_read_where_a_few_are_small(column, cells):
    rows = each_as_a_row(column, cells)
    assert scored(*rows, methods=[column]).confidence["confidence"].notna().all()


UNTOLD = [-9999.0, -9999, -1e30, float("-inf"), float("nan"), None, "-9999.0", "NaN"]


@each("untold", UNTOLD)
def test_a_log_probability_that_is_not_told_is_missing_in_its_row_alone(untold):
    told = {"tokens": ["F", "lu"], "logprobs": [-0.1, -0.2], "prior_logprobs": [-1, -2]}
    told |= {"answer": "Flu"}
    told |= {"samples": ["Flu", "Cold"], "sample_logprobs": [[-0.1], [-0.2]]}
    told |= {"alternatives": [[["F", -0.1], ["C", -3.0]], [["lu", -0.2]]]}
    columns = {
        "logprobs": ([-0.1, untold], ["asp", "msp", "perplexity", "sequence_probability", "pmi"]),
        "prior_logprobs": ([untold, -2], ["pmi"]),
        "sample_logprobs": ([[-0.1], [untold]], ["mc_se", "semantic_entropy", "sentence_sar"]),
        "alternatives": ([[["F", -0.1], ["C", untold]], [["lu", -0.2]]], ["ccp"]),
    }
    for column, (cell, methods) in columns.items():
        rows = [ROW | told | {column: cell}, ROW | told | {"case_id": "b"}]
        confidence = scored(*rows, methods=methods).confidence.set_index(["case_id", "method"])
        assert confidence.loc["a", "confidence"].isna().all(), column
        (why,) = set(confidence.loc["a", "missing"])
        assert says(why, column, "token", -9999, "-inf")
        whole = [m for m in methods if m != "ccp"]  # too few alternatives
        assert confidence.loc["b", "confidence"][whole].notna().all(), column


ENCODED = {
    "answer": "Crohn&#39;s disease", "truth": "Crohn&#x27;s", "patient": "He drinks &amp; smokes.",
    "accepted": ["Flu", "Ã¢ge", "Ã\x89tat"], "samples": "MÃ©niÃ¨re; Flu", "missing": "itâ€™s gone",
    "p_true": ["True", "It is 38Â\xa0C."], "cot_ce": "It is \ufffd. [80]",
    "model": "a 38 Â°C one", "dataset": "Î²-blocker",
}  # fmt: skip


@each("column", ENCODED)
def test_text_that_another_program_encoded_is_read_as_it_is_and_told_by_place(column, tmp_path):
    rows = [ROW, ROW | {"case_id": "b", column: ENCODED[column]}]
    with pytest.warns(UserWarning, match=saying(1, "encoded", "row 2", column)) as told:
        run = scored(*rows)
    assert told[0].filename == __file__
    if column == "answer":
        assert run.answers["answer"].tolist() == ["Influenza", ENCODED[column]]
    pd.DataFrame(rows).to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    with pytest.warns(UserWarning, match=f"r.jsonl: 1 cells .*: row 2, {column}$"):
        tl.score(tmp_path / "r.jsonl", "ce", Setup(**QUIET))


PLAIN = "Ménière’s “disease” at 38 °C; Sjögren & co., R&D; 5 µg of β-blocker, Âge, groß“, É» â"


def test_other_signs_and_parts_of_characters_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scored(ROW | {"patient": PLAIN, "tokens": ["\ufffd", "Ã©"], "logprobs": [-0.1, -0.2]})


def test_a_report_of_scored_replies_says_what_is_not_known(tmp_path):
    run = scored(ROW | {"logprobs": [-0.1], "ce": 80}, ROW | {"case_id": "b", "samples": "Flu;Flu"})
    save_run(run, tmp_path / "run")
    for one in (run, tl.load_run(tmp_path / "run")):
        found = tl.report(one)
        assert says(found.text, "2 from a table", "0 without a verdict")
        assert "Asked: nothing" in found.text and "greedy" not in found.text
        assert "Samples: K" not in found.text and tl.NOTICE in found.text
        priced = tl.report(one, usd_in=1, usd_out=2)
        assert priced.costs["usd"].isna().all() and "never asked: diagnosis, ce" in str(priced)
        assert "never asked" in priced._repr_html_()


@each("kind", ["csv", "jsonl", "parquet"])
def test_bad_files_are_named_with_their_row(kind, tmp_path):
    file, row = tmp_path / f"r.{kind}", ROW | {"level": 200}
    if kind == "jsonl":
        file.write_text(json.dumps(row) + "\n")
    else:
        save_table(pd.DataFrame([row]), file)
    with pytest.raises(tl.DataError, match=saying(f"r.{kind}", "row 1", "level", 200, "1 to 100")):
        tl.score(file)
    file.write_bytes(b"PK\x03\x04 no table")
    with pytest.raises(tl.DataError, match=f"r.{kind}"):
        tl.score(file)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(TypeError, match=saying("replies", "list", "DataFrame", "path")):
        tl.score([ROW])  # type: ignore[arg-type]
    with pytest.raises(
        tl.DataError, match=saying("gone.csv", "exists", ".csv", ".tsv", ".jsonl", ".parquet")
    ):
        tl.score(tmp_path / "gone.csv")
    twice = pd.concat([pd.DataFrame([ROW]), pd.DataFrame([{"truth": "Asthma"}])], axis=1)
    with pytest.raises(tl.DataError, match="twice"):
        tl.score(twice)
    (tmp_path / "tabs.csv").write_text("case_id\ttruth\tanswer\na\tx\tx\n")
    with pytest.raises(tl.DataError, match=saying("tabs.csv", "case_id", "answer")):
        tl.score(tmp_path / "tabs.csv")


def test_tables_are_written_as_their_ending_says_and_latex_is_escaped(tmp_path):
    table = pd.DataFrame({"a_b": [1.5], "c": ["50% & more"]})
    for name in ("t.csv", "t.tsv", "t.parquet"):
        tl.save_table(table, tmp_path / name)
    assert (tmp_path / "t.tsv").read_text() == "a_b\tc\n1.5\t50% & more\n"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), table)
    with pytest.raises(ValueError, match=saying("t.xlsx", ".csv", ".tsv", ".parquet")):
        tl.save_table(table, tmp_path / "t.xlsx")
    text = tl.to_latex(table, caption="50% of a_b & c")
    assert r"\caption{50\% of a\_b \& c}" in text and r"50\% \& more" in text and r"a\_b" in text


def test_confidences_must_fit_the_answers(asked):
    with pytest.raises(ValueError, match=saying("confidence", "row", "answers")):
        tl.score(asked.answers.head(1), confidence=asked.confidence)
    strange = asked.confidence.assign(method="mine")
    with pytest.raises(ValueError, match=saying("method", "'mine'")):
        tl.score(asked.answers, confidence=strange)


def test_the_example_says_what_is_missing(tmp_path):
    example = DATA / "workbench" / "replies.jsonl"
    words = ["score", str(example), "--out", str(tmp_path), "-p", "grader=exact"]
    words += ["-p", "methods=[asp, ccp, ccp_min, ccp_mean, ce]"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert says(done.output, "embedded", "starter", "accuracy 0.50", tl.NOTICE)
    assert says(done.output, "ccp, ccp_min, ccp_mean", "no alternatives")
    refused = CliRunner().invoke(app, ["score", str(example), "-p", "sample=3"])
    assert refused.exit_code == 2 and says(refused.stderr, "'sample'", "samples")


SAME, OTHER = ["It is gout."] * 3, ["It is gout.", "Gout, I think.", "It is gout."]


def with_texts(n_same: int, n_other: int, **more: Any) -> list[dict[str, Any]]:
    """Rows whose whole replies are one text, then rows in which they differ."""
    whole = [SAME] * n_same + [OTHER] * n_other
    row = {"truth": "Gout", "answer": "Gout", "samples": ["Gout", "Gout", "Flu"], **more}
    return [{**row, "case_id": str(i), "texts": texts} for i, texts in enumerate(whole)]


@each(
    "rows, refused",
    [
        (with_texts(20, 0), True),
        (with_texts(19, 0), False),
        (with_texts(38, 2), True),
        (with_texts(37, 3), False),
        (with_texts(0, 40), False),
        ([{**row, "texts": json.dumps(row["texts"])} for row in with_texts(20, 0)], True),
        ([{**row, "texts": [*row["texts"], None, ""]} for row in with_texts(20, 0)], True),
        ([{**row, "texts": ["It is gout."]} for row in with_texts(30, 0)], False),
        ([{**row, "dataset": f"set {i % 2}"} for i, row in enumerate(with_texts(30, 0))], False),
        ([{k: v for k, v in row.items() if k != "texts"} for row in with_texts(30, 0)], False),
    ],
)
def test_copies_are_not_samples(rows: list[dict[str, Any]], refused: bool) -> None:
    run = scored(*rows, methods=("poc", "lexical_similarity", "num_set", "mc_se", "ce"))
    of_samples = run.confidence[
        run.confidence["method"].isin(("poc", "lexical_similarity", "num_set"))
    ]
    if refused:
        assert of_samples["confidence"].isna().all()
        (why,) = set(of_samples["missing"])
        assert says(why, "copies", f"of {len(rows)} rows")
        assert reason(run, "mc_se") == why and says(reason(run, "ce"), "no ce")
    else:
        assert of_samples["confidence"].notna().all()
    assert run.answers["n_samples"].eq(3).all() and run.answers["correct"].eq(1).all()


def test_whole_replies_are_a_list_or_json() -> None:
    """Sentences contain semicolons."""
    (row,) = with_texts(1, 0)
    with pytest.raises(tl.DataError, match=saying("texts", "'Gout; it is gout.'")):
        scored({**row, "texts": "Gout; it is gout."})


def test_copies_of_one_model_leave_the_others_as_they_are() -> None:
    rows = [*with_texts(30, 0, model="greedy"), *with_texts(0, 30, model="drawn")]
    table = scored(*rows, methods=("poc",)).confidence
    values = table.groupby("model")["confidence"].apply(lambda own: own.notna().all())
    assert values.to_dict() == {"drawn": True, "greedy": False}


@each(
    "model, condition, refused",
    [
        ("mistral-v2", "vignette", True),
        ("mistral-v2", "multiturn", False),
        ("gpt4_1106", "vignette", False),
        ("gpt3_1106", "vignette", False),
    ],
)
def test_copies_in_recorded_replies(model: str, condition: str, refused: bool) -> None:
    rows = tl.load_replies("craft_md", model, condition)
    rows = rows[rows["is_disease"]].head(120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = tl.score(rows, ["poc"], Setup(**QUIET)).confidence
    copies = table["missing"].str.startswith("copies")
    assert copies.any() == refused and table["confidence"].isna().all() == refused
    if refused:
        assert "100.0% of 120 rows" in set(table.loc[copies, "missing"]).pop()


def test_the_command_says_of_copies_that_they_are_no_samples(tmp_path) -> None:
    file = tmp_path / "greedy.jsonl"
    file.write_text("\n".join(map(json.dumps, with_texts(30, 0))), encoding="utf-8")
    result = CliRunner().invoke(app, ["score", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert says(result.output, "copies", "samples")

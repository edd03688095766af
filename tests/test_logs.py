"""Logs of other tools: what each says becomes rows, and the real ones give the numbers by hand."""

from __future__ import annotations

import csv
import json
import math
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from each import each
from fake_model import FakeEncoder
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli.commands import app
from trustlab.datasets.foreign_logs import MOST_RATIO, kind_of
from trustlab.datasets.replies_file import MARGIN, OPTION, spells
from trustlab.settings import Setup

QUIET: dict[str, Any] = {"cache": ":memory:", "quiet": True, "grader": "exact"}
QUIET["encoder"] = FakeEncoder()
METHODS = ["asp", "poc"]


def scored(table: Any, methods: Any = METHODS) -> tl.Run:
    return tl.score(table, methods, Setup(**QUIET))


def values(run: tl.Run, method: str) -> list[float]:
    return run.confidence.query("method == @method")["confidence"].tolist()


def reasons(run: tl.Run, method: str) -> list[str]:
    return run.confidence.query("method == @method")["missing"].tolist()


def write_lines(file: Path, records: list[dict[str, Any]]) -> Path:
    file.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return file


def logprobs_of(*tokens: tuple[str, float]) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": value} for token, value in tokens]}


# inspect_ai

FLU = logprobs_of(("Inf", -0.5), ("luenza", -0.1))


def inspect_choice(text: Any, end: str = "stop", logprobs: Any = None) -> dict[str, Any]:
    return {"message": {"content": text}, "stop_reason": end, "logprobs": logprobs}


def inspect_sample(id: Any, epoch: int, *choices: Any, score: Any = "C", **more: Any) -> Any:
    sample = {"id": id, "epoch": epoch, "input": "Fever.", "target": "Influenza"}
    scores = {"includes": {"value": score}}
    return sample | {"output": {"choices": list(choices)}, "scores": scores} | more


def inspect_log(file: Path, *samples: Any) -> Path:
    run = {"task": "t", "model": "m", "dataset": {"name": "d"}}
    log = {"version": 2, "status": "success", "eval": run, "samples": list(samples)}
    if file.suffix == ".eval":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(log))
            for n, sample in enumerate(samples):
                archive.writestr(f"samples/{n}.json", json.dumps(sample))
    else:
        file.write_text(json.dumps(log, indent=1), encoding="utf-8")
    return file


@each("ending", [".eval", ".json", ".txt"])
def test_an_inspect_log_is_told_by_its_content(ending, tmp_path):
    epochs = [inspect_sample("a", e, inspect_choice(t)) for e, t in ((2, "Asthma"), (3, "Flu"))]
    first = inspect_sample("a", 1, inspect_choice("Influenza", logprobs=FLU))
    run = scored(inspect_log(tmp_path / f"log{ending}", *epochs, first))
    row = run.answers.iloc[0]
    assert (row["case_id"], row["dataset"], row["model"]) == ("a", "d", "m")
    assert (row["answer"], row["correct"], row["n_samples"]) == ("Influenza", 1, 2)
    assert values(run, "asp") == [pytest.approx((math.exp(-0.5) + math.exp(-0.1)) / 2)]
    assert values(run, "poc") == [0.5]
    assert "epoch 1" in run.parameters["log"]["answer"]


def test_further_choices_are_samples_and_thought_is_none(tmp_path):
    thought = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Influenza"}]
    choices = [inspect_choice(thought), inspect_choice("<think>x</think>Asthma")]
    attached = {"attachments": {"h": "A long question."}, "input": "attachment://h"}
    log = tl.read_log(inspect_log(tmp_path / "x.json", inspect_sample(1, 1, *choices, **attached)))
    assert (log.rows[0]["answer"], log.rows[0]["samples"]) == ("Influenza", ["Asthma"])
    assert log.rows[0]["patient"] == "A long question."


@each("score", ["P", "N", 0.5, None, {"a": 1}])
def test_a_partial_or_lacking_verdict_is_missing_and_never_wrong(score, tmp_path):
    wrong = inspect_sample("b", 1, inspect_choice("Asthma"), score="I")
    right = inspect_sample("a", 1, inspect_choice("Influenza"), score=score)
    answers = scored(inspect_log(tmp_path / "x.json", right, wrong)).answers
    assert math.isnan(answers["correct"][0]) and answers["missing"][0]
    assert answers["correct"][1] == 0


@each("end", ["max_tokens", "model_length", "content_filter", "unknown", "tool_calls"])
def test_a_reply_that_did_not_end_is_missing(end, tmp_path):
    choice = inspect_choice("Influenza", end, FLU)
    answers = scored(inspect_log(tmp_path / "x.json", inspect_sample("a", 1, choice))).answers
    assert answers["correct"].isna().all() and answers["answer"].isna().all()
    assert answers["missing"][0]
    ended = inspect_sample("a", 1, inspect_choice("Influenza", "STOP"))
    assert scored(inspect_log(tmp_path / "y.json", ended)).answers["correct"][0] == 1


def test_an_error_and_a_case_without_epoch_1_are_missing(tmp_path):
    error = inspect_sample("a", 1, error={"message": "server gone"})
    late = inspect_sample("b", 2, inspect_choice("Influenza"))
    answers = scored(inspect_log(tmp_path / "x.json", error, late)).answers
    assert answers["correct"].isna().all() and "server gone" in answers["missing"][0]


def test_an_epoch_that_failed_is_a_missing_sample_and_its_choices_are_none(tmp_path):
    first = inspect_sample("a", 1, inspect_choice("Influenza"))
    gone = inspect_sample("a", 2, inspect_choice("Asthma"), error={"message": "server gone"})
    last = inspect_sample("a", 3, inspect_choice("Flu"))
    log = tl.read_log(inspect_log(tmp_path / "x.json", first, gone, last))
    assert log.rows[0]["samples"] == [None, "Flu"]
    failed = inspect_sample("a", 1, inspect_choice("Asthma"), error={"message": "server gone"})
    row = tl.read_log(inspect_log(tmp_path / "y.json", failed, last)).rows[0]
    assert (row["answer"], row["samples"]) == (None, ["Flu"])


def test_of_several_scorers_one_is_named(tmp_path):
    scores = {"scores": {"strict": {"value": "I"}, "judge": {"value": "C"}}}
    file = inspect_log(tmp_path / "x.json", inspect_sample("a", 1, inspect_choice("Flu"), **scores))
    with pytest.raises(tl.DataError, match="strict; judge"):
        scored(file)
    with pytest.raises(tl.DataError, match="strict; judge"):
        tl.read_log(file, verdict="other")
    run = scored(tl.read_log(file, verdict="judge"))
    assert run.answers["correct"][0] == 1 and run.parameters["log"]["verdict"] == "judge"


def test_letters_are_their_options_and_only_the_letter_s_token_counts(tmp_path):
    tokens = logprobs_of(("ANSWER", -3.0), (": ", -2.0), ("B", -0.25))
    choice = inspect_choice("ANSWER: B", logprobs=tokens)
    options = {"choices": ["Asthma", "Gout"], "target": "B"}
    unread = inspect_sample("b", 1, inspect_choice("I do not know"), score="I", **options)
    run = scored(
        inspect_log(tmp_path / "x.json", inspect_sample("a", 1, choice, **options), unread)
    )
    assert run.answers["answer"].fillna("").tolist() == ["Gout", ""]
    assert run.answers["truth"].tolist() == ["Gout", "Gout"]
    assert run.answers["correct"].tolist() == [1, 0]
    assert values(run, "asp")[0] == pytest.approx(math.exp(-0.25))


def test_a_bomb_and_another_form_are_refused(tmp_path):
    bomb = tmp_path / "x.eval"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", " " * (MOST_RATIO * 20_000))
    with pytest.raises(tl.DataError, match="size"):
        tl.read_log(bomb)
    sample = inspect_sample("a", 1, inspect_choice("Flu"))
    del sample["target"]
    with pytest.raises(tl.DataError, match=r"sample a.*'target'"):
        scored(inspect_log(tmp_path / "y.json", sample))
    with pytest.raises(tl.DataError, match="inspect_ai"):
        tl.read_log(write_lines(tmp_path / "z.jsonl", [{"case_id": "a", "answer": "b"}]))


def test_without_zstd_the_way_out_is_named(tmp_path, monkeypatch):
    file = inspect_log(tmp_path / "x.eval", inspect_sample("a", 1, inspect_choice("Flu")))
    packed = file.read_bytes().replace(b"\x08\x00", b"\x5d\x00")  # method 93
    file.write_bytes(packed)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(tl.DataError, match=r"trustlab\[logs\].*inspect log convert --to json"):
        scored(file)


# lm-evaluation-harness


def document(n: int, texts: list[str], filter: str = "none", **more: Any) -> dict[str, Any]:
    record = {"doc_id": n, "target": "Influenza", "arguments": {"gen_args_0": {"arg_0": "Fever."}}}
    record |= {"resps": [texts], "filtered_resps": [texts[0]], "filter": filter}
    return record | {"metrics": ["exact_match"], "exact_match": 1.0} | more


def test_repeats_are_samples_and_one_filter_counts(tmp_path):
    texts = ["Influenza", "Flu", "Flu"]
    by_vote = document(0, texts, "maj", filtered_resps=["Flu"], exact_match=0.0)
    file = write_lines(tmp_path / "samples_t.jsonl", [document(0, texts, "first"), by_vote])
    with pytest.raises(tl.DataError, match="exact_match,first; exact_match,maj"):
        scored(file)
    for verdict, answer, samples in (("first", "Influenza", 2), ("maj", "Flu", 2)):
        run = scored(tl.read_log(file, verdict=f"exact_match,{verdict}"))
        row = run.answers.iloc[0]
        assert (row["answer"], row["n_samples"], row["dataset"]) == (answer, samples, "t")
        assert row["correct"] == (verdict == "first")
        assert values(run, "poc") == [1 if verdict == "first" else 0.5]


def test_a_partial_metric_is_missing_and_an_empty_reply_wrong(tmp_path):
    partial = document(0, ["Flu"], exact_match=0.4)
    empty = document(1, [" "], exact_match=0.0)
    answers = scored(write_lines(tmp_path / "s.jsonl", [partial, empty])).answers
    assert math.isnan(answers["correct"][0]) and answers["correct"][1] == 0


def choice_of(n: int, logprobs: list[float], target: int, **more: Any) -> dict[str, Any]:
    names = ["Gout", "Influenza", "Flu"]
    arguments = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": f" {x}"} for i, x in enumerate(names)}
    record = {"doc_id": n, "target": str(target), "arguments": arguments, "filter": "none"}
    record["resps"] = [[[str(value), "False"]] for value in logprobs]
    record["filtered_resps"] = [[str(value), "False"] for value in logprobs]
    return record | more


def test_a_choice_by_likelihood_gives_probability_and_margin(tmp_path):
    logprobs = [-2.0, -1.0, -4.0]
    chances = np.exp(logprobs) / np.exp(logprobs).sum()
    metrics = {"metrics": ["acc", "acc_norm", "brier_score"], "brier_score": [1, "[0.1 0.9]"]}
    record = choice_of(0, logprobs, 1, acc=1.0, acc_norm=1.0, **metrics)
    file = write_lines(tmp_path / "samples_t.jsonl", [record])
    with pytest.raises(tl.DataError, match="acc; acc_norm"):
        scored(file)
    run = scored(tl.read_log(file, verdict="acc"))
    assert run.answers["answer"].tolist() == ["Influenza"] and run.answers["correct"][0] == 1
    assert values(run, OPTION) == [pytest.approx(chances[1])]
    assert values(run, MARGIN) == [pytest.approx(chances[1] - chances[0])]
    other = choice_of(0, logprobs, 1, acc=0.0, metrics=["acc"])  # of another choice
    with pytest.raises(tl.DataError, match="acc does not judge"):
        scored(write_lines(tmp_path / "s.jsonl", [other]))


# OpenAI's batches


def request(name: str, question: str, temperature: float | None, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": question}], **more}
    if temperature is not None:
        body["temperature"] = temperature
    return {"custom_id": name, "method": "POST", "body": body}


def output(name: str, *texts: str, end: str = "stop", status: int = 200) -> dict[str, Any]:
    choices = []
    for index, text in enumerate(texts):
        message = {"role": "assistant", "content": text}
        choices.append({"index": index, "finish_reason": end, "message": message})
    response = {"status_code": status, "body": {"choices": choices}}
    return {"custom_id": name, "response": response, "error": None}


def test_requests_with_equal_messages_are_one_case(tmp_path):
    asked = [request("a-s", "Fever?", None), request("a", "Fever?", 0), request("b", "Cough?", 0.7)]
    asked += [request("c", "Pain?", 0), request("d", "Rash?", 0), request("e", "Ache?", 0)]
    sent = [output("a-s", "Flu", "Influenza"), output("a", "Influenza", "Influenza")]
    sent += [output("b", "Asthma", "Gout"), output("c", "Gout", end="length")]
    sent.append({"custom_id": "d", "response": None, "error": {"message": "expired"}})
    requests = write_lines(tmp_path / "in.jsonl", asked)
    file = write_lines(tmp_path / "out.jsonl", sent)
    rows = [{"patient": q, "truth": t} for q, t in (("Fever?", "Influenza"), ("Cough?", "Asthma"))]
    rows += [{"patient": question, "correct": 1} for question in ("Pain?", "Rash?", "Ache?")]
    truth = write_lines(tmp_path / "truth.jsonl", rows)
    for options in ({}, {"requests": requests}, {"truth": truth}):
        with pytest.raises(tl.DataError, match="--requests and --truth"):
            tl.read_log(file, **options)
    run = scored(tl.read_log(file, requests=requests, truth=truth))
    answers = run.answers.set_index("case_id")
    assert answers["answer"].fillna("").tolist() == ["Influenza", "Asthma", "", "", ""]
    assert answers["n_samples"].fillna(0).tolist() == [2, 1, 0, 0, 0]
    assert answers["correct"].tolist()[:2] == [1, 1] and answers["correct"][2:].isna().all()
    assert "expired" in answers["missing"]["d"] and answers["missing"]["e"]
    with pytest.raises(tl.DataError, match="custom_id"):
        tl.read_log(file, requests=write_lines(tmp_path / "few.jsonl", asked[1:]), truth=truth)
    few = write_lines(tmp_path / "t.jsonl", rows[:1])
    with pytest.raises(tl.DataError, match="a row for each case"):
        tl.read_log(file, requests=requests, truth=few)


# uqlm, and scores of one's own


def test_a_frame_of_uqlm_brings_its_own_scores(tmp_path):
    record = {"prompt": "Fever?", "response": "Influenza", "exact_match": 0.5}
    record |= {"sampled_responses": ["Influenza", "Flu"], "logprob": FLU["content"]}
    file = write_lines(tmp_path / "u.jsonl", [record])
    truth = write_lines(tmp_path / "t.jsonl", [{"patient": "Fever?", "correct": 0, "case_id": "x"}])
    run = scored(tl.read_log(file, truth=truth))
    assert run.answers["case_id"].tolist() == ["x"] and run.answers["correct"].tolist() == [0]
    assert values(run, "confidence:exact_match") == [0.5] and values(run, "poc") == [0.5]
    assert values(run, "asp") == [pytest.approx((math.exp(-0.5) + math.exp(-0.1)) / 2)]
    with pytest.raises(tl.DataError, match="--truth"):
        tl.read_log(file)


def own_rows(n: int = 24) -> list[dict[str, Any]]:
    rows = []
    for i in range(n):
        is_right = i % 2
        scores = {"confidence:probe": 10.0 * is_right + i % 3, "probability:p": 0.25 + is_right / 2}
        answer = {"answer": "Flu" if is_right else "Gout", "truth": "Flu", "case_id": f"{i}"}
        rows.append(answer | scores)
    return rows


def test_own_scores_are_ranked_and_only_probabilities_are_calibrated(tmp_path):
    run = scored(pd.DataFrame(own_rows()), ["random"])
    metrics = tl.metrics_table(run).set_index(["method", "metric", "level"])["value"]
    assert metrics["confidence:probe", "auroc", "pooled"] == 1
    assert metrics["probability:p", "brier", "pooled"] == pytest.approx(0.25**2)
    assert ("confidence:probe", "brier", "pooled") not in metrics.index
    assert run.families == {"random": "baseline", "confidence:probe": "own", "probability:p": "own"}
    compared = tl.compare_methods(run.answers, run.confidence, "confidence:probe")
    assert set(compared["family"]) == {"own", "baseline"}
    file = write_lines(tmp_path / "r.jsonl", own_rows())
    words = ["score", str(file), "--out", str(tmp_path / "out"), "-p", "methods=[random]"]
    done = CliRunner().invoke(app, [*words, "-p", "grader=exact"])
    assert done.exit_code == 0, done.output
    again = tl.load_run(tmp_path / "out")
    assert again.families == run.families
    assert again.generations[1].own == {"confidence:probe": 11.0, "probability:p": 0.75}
    assert tl.show(again, "1", 100)


@each("name, value", [("probability:p", 1.5), ("confidence:p", math.inf), ("confidence:p", "high")])
def test_what_is_no_score_is_refused(name, value):
    with pytest.raises(tl.DataError, match=f"{name}: received"):
        scored(pd.DataFrame([{"case_id": "a", "answer": "b", "truth": "b", name: value}]))


def test_options_need_no_model():
    row = {"case_id": "a", "truth": "Gout", "options": ["Gout", "Flu"]}
    run = scored(pd.DataFrame([row | {"option_logprobs": [math.log(0.3), math.log(0.1)]}]))
    assert run.answers["answer"].tolist() == ["Gout"] and run.answers["correct"].tolist() == [1]
    assert values(run, OPTION) == [pytest.approx(0.75)] and values(run, MARGIN) == [
        pytest.approx(0.5)
    ]
    run = scored(pd.DataFrame([row | {"answer": "Flu", "option_logprobs": [-1.0, -3.0]}]))
    assert values(run, MARGIN)[0] < 0 < values(run, OPTION)[0] < 0.5
    run = scored(pd.DataFrame([row | {"answer": "Asthma", "option_logprobs": [-1.0, -3.0]}]))
    assert math.isnan(values(run, OPTION)[0]) and reasons(run, OPTION)[0]
    for options in (["Gout"], ["Gout", "gout"], ["a", "b", "c"]):
        with pytest.raises(tl.DataError, match="options"):
            scored(pd.DataFrame([row | {"options": options, "option_logprobs": [-1.0, -2.0]}]))


# Tokens that are another text's

ASTHMA = {"case_id": "a", "answer": "Asthma", "truth": "Asthma", "logprobs": [-0.1, -0.2]}


def test_log_probabilities_of_another_text_are_missing():
    run = scored(pd.DataFrame([ASTHMA | {"tokens": ["The", " is"]}]), ["asp", "token_sar"])
    assert run.confidence["confidence"].isna().all()
    assert len(set(run.confidence["missing"])) == 1 and "spell" in reasons(run, "asp")[0]
    samples = {"samples": ["Flu", "Gout"], "sample_logprobs": [[-0.1], [-0.2]]}
    for tokens, is_missing in (([["Flu"], ["Go"]], True), ([["Flu"], ["Gout"]], False)):
        row = ASTHMA | samples | {"sample_tokens": tokens}
        run = scored(pd.DataFrame([row]), ["mc_nse", "asp"])
        assert math.isnan(values(run, "mc_nse")[0]) == is_missing
        assert not math.isnan(values(run, "asp")[0])  # without tokens nothing speaks against them


SPELT = [
    (["Asth", "ma"], "Asthma", True), ([" Asth", "ma", "</s>"], "Asthma", True),
    (["[Asth", "ma]"], "Asthma", True), (["ĠLyme", "Ġdisease"], "Lyme disease", True),
    (["▁Lyme", "▁disease"], "Lyme disease", True), (["SjÃ¶", "gren"], "Sjögren", True),
    (["Sj", "\ufffd", "\ufffd", "gren"], "Sjögren", True), (["肺", "炎"], "肺炎", True),
    (["肺", "癌"], "肺炎", False), (["The", " is"], "Asthma", False),
    (["Asth"], "Asthma", False), (["It is ", "Asthma"], "Asthma", False),
]  # fmt: skip


@each("tokens, text, is_spelt", SPELT)
def test_tokens_spell_a_text_however_they_are_written(tokens, text, is_spelt):
    assert spells(tokens, text) == is_spelt


# Frames of others


def test_ids_are_text_and_may_be_the_index():
    ids = [pd.Timestamp("2024-01-02"), UUID(int=7), Decimal("1.50"), 3]
    frame = pd.DataFrame(
        {"answer": ["Flu"] * 4, "truth": ["Flu"] * 4}, pd.Index(ids, name="case_id")
    )
    answers = scored(frame).answers
    assert answers["case_id"].tolist() == ["2024-01-02", str(UUID(int=7)), "1.50", "3"]
    table = pytest.importorskip("pyarrow").Table.from_pylist([ASTHMA | {"tokens": ["Asth", "ma"]}])
    assert values(scored(table), "asp") == values(scored(pd.DataFrame([ASTHMA])), "asp")


def test_polars_is_read():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame([ASTHMA | {"samples": ["Asthma", "Flu"]}])
    run, plain = scored(frame), scored(pd.DataFrame([ASTHMA | {"samples": ["Asthma", "Flu"]}]))
    assert run.confidence.equals(plain.confidence)


def test_a_series_in_a_cell_is_refused_by_its_place():
    frame = pd.DataFrame([ASTHMA, ASTHMA | {"case_id": "b", "samples": pd.Series(["Flu"])}])
    with pytest.raises(tl.DataError, match="row 2 .*samples: received 'Series'"):
        scored(frame)


# The real logs, beside a conversion by hand

LOGS = Path(__file__).resolve().parents[2] / "shared" / "logs"
if not LOGS.is_dir():
    LOGS = Path(__file__).resolve().parents[3] / "shared" / "logs"
real = pytest.mark.skipif(
    not LOGS.is_dir(), reason=f"{LOGS} is not there: real logs of other tools"
)
CHOSEN = "inspect_choice_stub_logprobs.eval"
HF = "inspect_open_hf_smollm2_epochs5_logprobs_NOT_OF_THE_REPLY.eval"
FIVE, EPOCHS = "inspect_open_stub_5choices_logprobs.eval", "inspect_open_stub_epochs5_logprobs.eval"
BATCH = ["openai_batch_out.jsonl", "--requests", str(LOGS / "openai_batch_in.jsonl")]
COMMANDS: dict[str, list[str]] = {
    "choice": [CHOSEN],
    "hf": [HF],
    "five": [FIVE],
    "epochs": [EPOCHS],
    "json": ["inspect_open_mockllm_epochs5.json"],
    "generated": ["lmeval_samples_own_gen.jsonl", "--verdict", "exact_match,first"],
    "options": ["lmeval_samples_own_mc.jsonl", "--verdict", "acc"],
    "batch": [*BATCH, "--truth", "TRUTH"],
    "black": ["uqlm_black.jsonl", "--truth", "TRUTH"],
    "white": ["uqlm_white.jsonl", "--truth", "TRUTH"],
}


def questions() -> list[tuple[str, str, str, list[str]]]:
    names: dict[str, Any] = {}
    exec((LOGS / "questions.py").read_text(encoding="utf-8"), names)  # noqa: S102
    return names["Q"]


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (LOGS / name).read_text(encoding="utf-8").splitlines()]


def inspect_by_hand(name: str) -> dict[str, dict[str, Any]]:
    """Case -> what each method reads, from the log as it lies in the archive."""
    if name.endswith(".json"):
        samples = json.loads((LOGS / name).read_text(encoding="utf-8"))["samples"]
    else:
        reader = pytest.importorskip("backports.zstd.zipfile", reason="backports.zstd is not there")
        with reader.ZipFile(LOGS / name) as archive:
            names = [each for each in archive.namelist() if each.startswith("samples/")]
            samples = [json.loads(archive.read(each)) for each in names]
    cases: dict[str, Any] = {}
    for sample in sorted(samples, key=lambda sample: sample["epoch"]):
        case = cases.setdefault(sample["id"], {"choices": [], "score": sample["scores"]})
        case["choices"] += sample["output"]["choices"]
    rows = {}
    for case_id, case in cases.items():
        (score,) = case["score"].values()
        texts = [choice["message"]["content"] for choice in case["choices"]]
        logprobs = (case["choices"][0].get("logprobs") or {}).get("content") or []
        numbers = [token["logprob"] for token in logprobs]
        is_right = {"C": 1, "I": 0}[score["value"]]
        rows[case_id] = {"correct": is_right, "texts": texts, "logprobs": numbers}
    return rows


def by_hand(kind: str) -> dict[str, dict[str, Any]]:
    """Case -> correct, the texts of answer and samples, the answer's log-probabilities."""
    name = COMMANDS[kind][0]
    truth = {question: (case_id, answer) for case_id, question, answer, _ in questions()}
    rows: dict[str, dict[str, Any]] = {}
    if name.startswith("inspect"):
        return inspect_by_hand(name)
    if kind == "generated":
        for line in lines_of(name):
            if line["filter"] == "first":
                right = int(line["exact_match"])
                texts = [text.strip() for text in line["resps"][0]]
                rows[str(line["doc_id"])] = {"correct": right, "texts": texts, "logprobs": []}
    if kind == "options":
        for line in lines_of(name):
            numbers = np.array([float(replies[0][0]) for replies in line["resps"]])
            chances = np.exp(numbers) / np.exp(numbers).sum()
            row = {"correct": int(line["acc"]), "texts": [""], "logprobs": []}
            rows[str(line["doc_id"])] = row | {"chance": chances.max()}
    if kind == "batch":
        questions_by_id = {}
        for line in lines_of("openai_batch_in.jsonl"):
            questions_by_id[line["custom_id"]] = line["body"]["messages"][-1]["content"]
        for line in sorted(lines_of(name), key=lambda line: line["custom_id"]):
            case_id, right = truth[questions_by_id[line["custom_id"]]]
            for choice in line["response"]["body"]["choices"]:
                text = choice["message"]["content"]
                numbers = [token["logprob"] for token in choice["logprobs"]["content"]]
                new = {"correct": int(text == right), "texts": [], "logprobs": numbers}
                rows.setdefault(case_id, new)["texts"].append(text)
    if kind in ("black", "white"):
        for line in lines_of(name):
            case_id, right = truth[line["prompt"]]
            numbers = [token["logprob"] for token in line.get("logprob") or ()]
            texts = [line["response"], *(line.get("sampled_responses") or ())]
            row = {"correct": int(texts[0] == right), "texts": texts, "logprobs": numbers}
            scores = {name: x for name, x in line.items() if isinstance(x, float | int)}
            rows[case_id] = row | {"own": scores}
    return rows


@real
@each("kind", COMMANDS)
def test_a_real_log_by_one_command_gives_the_numbers_by_hand(kind, tmp_path):
    with (tmp_path / "truth.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["case_id", "patient", "truth"])
        table.writerows([question[:3] for question in questions()])
    rows = by_hand(kind)
    words = [word.replace("TRUTH", str(tmp_path / "truth.csv")) for word in COMMANDS[kind]]
    words[0] = str(LOGS / words[0])
    out = ["--out", str(tmp_path / "out"), "-p", f"methods=[{', '.join(METHODS)}]"]
    done = CliRunner().invoke(app, ["score", *words, *out, "-p", "grader=exact"])
    assert done.exit_code == 0, done.output
    run = tl.load_run(tmp_path / "out")
    answers = run.answers.set_index("case_id")
    assert set(answers.index) == set(rows) and "log" in run.parameters
    if kind == "hf":  # no reply of it has a known end
        assert answers["correct"].isna().all() and "'unknown'" in answers["missing"].iloc[0]
        return
    values = run.confidence.pivot(index="case_id", columns="method", values="confidence")
    for case_id, row in rows.items():
        assert answers["correct"][case_id] == row["correct"]
        answer, *samples = row["texts"]
        if kind in ("epochs", "five", "batch", "white"):
            mean = np.exp(row["logprobs"]).mean()
            assert values["asp"][case_id] == pytest.approx(mean, abs=1e-6)
        elif kind == "choice":  # "ANSWER: B": the letter is the diagnosis
            assert values["asp"][case_id] == pytest.approx(math.exp(row["logprobs"][-1]))
        else:
            assert math.isnan(values["asp"][case_id])
        if samples and answer:
            read = [text for text in samples if text]
            assert answers["n_samples"][case_id] == len(read)
            share = max(map(read.count, read)) / len(read)
            if kind != "generated":  # whose texts differ in signs alone, too
                assert values["poc"][case_id] == pytest.approx(share)
        for name, score in row.get("own", {}).items():
            assert values[f"confidence:{name}"][case_id] == pytest.approx(score)
        if kind == "options":
            assert values[OPTION][case_id] == pytest.approx(row["chance"])
    metrics = pd.read_csv(tmp_path / "out" / "metrics.csv")
    auroc = metrics[metrics["metric"].eq("auroc") & metrics["level"].eq("pooled")]
    right = sum(row["correct"] for row in rows.values())
    if min(right, len(rows) - right) < 10:
        assert auroc["value"].isna().all() and "no figure of AUROC" in done.output
        assert set(auroc["missing"]) - {""}
    else:
        assert auroc["value"].notna().any() or (auroc["n"] < len(rows)).all()


@real
def test_of_a_local_model_s_log_one_reply_in_forty_is_spelt_by_its_tokens():
    n_spelt = 0
    n_replies = 0
    reader = pytest.importorskip("backports.zstd.zipfile", reason="backports.zstd is not there")
    with reader.ZipFile(LOGS / HF) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                choice = json.loads(archive.read(name))["output"]["choices"][0]
                tokens = [token["token"] for token in choice["logprobs"]["content"]]
                n_spelt += spells(tokens, choice["message"]["content"])
                n_replies += 1
    assert (n_spelt, n_replies) == (1, 40)


@real
def test_every_real_file_is_told_by_its_content():
    kinds = {"inspect": "inspect_ai", "lmeval_samples": "lm-evaluation-harness", "uqlm": "uqlm"}
    for file in sorted(LOGS.iterdir()):
        wanted = ""
        for beginning, kind in kinds.items():
            if file.name.startswith(beginning):
                wanted = kind
        if file.name == "openai_batch_out.jsonl":
            wanted = "OpenAI batch"
        assert kind_of(file) == wanted, file.name

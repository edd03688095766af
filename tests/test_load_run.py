"""A run comes back from its folder alone, field by field; what is damaged or none is refused."""

from __future__ import annotations

import gzip
import json
import socket
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asking import ask
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases
from generations import FULL, generation, said, without

import trustlab as tl
from trustlab.confidence import METHODS
from trustlab.folder.records_file import NAME, encoded, read_records, save_records
from trustlab.folder.saved import COLUMNS, load_run, save_run, saved_record
from trustlab.records import GIVEN, Mark, Parameters, Reply
from trustlab.run import Run

CASES = made_cases(2)


def made(folder: Path | None, *models: FakeModel, **more: Any) -> Run:
    how = {"methods": "all", "samples": 3, "encoder": FakeEncoder(), "levels": [20, 100]}
    return ask(tl.benchmark, CASES, models or [FakeModel()], run_dir=folder, **how | more)


def same(a: Any, b: Any, where: str = "") -> None:
    """Every field alike, arrays with type and shape."""
    assert type(a) is type(b) or isinstance(a, dict), where
    if is_dataclass(a):
        for f in fields(a):
            same(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, where)
    elif isinstance(a, dict | tuple):
        assert len(a) == len(b), where
        pairs = [(k, a[k], b[k]) for k in a] if isinstance(a, dict) else zip(a, a, b, strict=True)
        for k, x, y in pairs:
            same(x, y, f"{where}[{str(k)[:20]}]")
    else:
        assert a == b or (a != a and b != b), where


def again(tmp_path: Path, *records: Any, kind: type[Any] = tl.Generation) -> tuple[Any, ...]:
    save_records(records, tmp_path / NAME)
    return read_records(tmp_path / NAME, kind)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("embedded")
    model = tl.open_model("embedded", device="cpu")
    cases, how = tl.load_cases("starter", n=1), {"samples": 3, "levels": [1, 100]}
    return ask(tl.benchmark, cases, [model], "all", run_dir=folder, **how), folder


def test_the_embedded_models_generations_come_back_field_by_field(embedded):
    run, folder = embedded
    back = load_run(folder)
    assert len(back.generations) == len(run.generations) == 2
    for a, b in zip(run.generations, back.generations, strict=True):
        assert a.entailment is not None and a.panel and a.assessment and a.told
        same(a, b)
        for method in METHODS.values():
            same(method.evaluate(a), method.evaluate(b))


@pytest.mark.parametrize(
    "models",
    [
        (FakeModel(), FakeModel("second", TEXT_ONLY)),
        (FakeModel(unreadable=lambda r, i: r.temperature == 0),),
    ],
    ids=["two", "unreadable"],
)
@pytest.mark.parametrize("more", [{}, {"keep_generations": False}], ids=["CSV", "Parquet"])
def test_tables_and_parameters_come_back_as_they_were(tmp_path, models, more):
    run = made(tmp_path, *models, **more)
    back = load_run(str(tmp_path))
    for name in COLUMNS:
        pd.testing.assert_frame_equal(
            getattr(back, name), getattr(run, name), check_exact=True, obj=name
        )
    assert back.parameters == json.loads(json.dumps(run.parameters))
    assert (back.families, back.folder) == (run.families, tmp_path)
    assert len(back.generations) == len(run.answers)
    kept = load_run(tmp_path, records=False)
    for row in run.answers.head(3).to_dict("records"):
        key = row["model"], row["case_id"], row["level"]
        same(saved_record(kept, *key), back.of_answer(*key)[2])
    assert saved_record(kept, "nobody", "c0", 1) is None
    pd.testing.assert_frame_equal(tl.metrics_table(back), tl.metrics_table(run))


def test_a_run_without_samples_comes_back(tmp_path):
    run = made(tmp_path, methods=["ce"])
    pd.testing.assert_frame_equal(load_run(tmp_path).answers, run.answers)


def test_it_takes_neither_model_nor_network(tmp_path, monkeypatch):
    made(tmp_path, cache=":memory:")

    def no(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    for what in ("trustlab.models.open_model", "trustlab.meaning.encoder.Encoder.encode"):
        monkeypatch.setattr(what, no)
    monkeypatch.setattr(socket, "socket", no)
    assert load_run(tmp_path).generations


def test_replies_that_were_scored_come_back(tmp_path):
    table = pd.DataFrame({"case_id": ["007", "b"], "answer": ["Flu", "NA"], "truth": ["Flu", "x"]})
    run = ask(tl.score, table, ["exact_posterior"], run_dir=tmp_path)
    back = load_run(tmp_path)
    assert list(back.answers["case_id"]) == ["007", "b"]
    assert list(back.answers["answer"]) == ["Flu", "NA"]
    same(run.generations, back.generations)


# The codec

ODD = {
    "everything": FULL,
    "nothing": generation(),
    "not numbers": generation(
        similarity=np.array([[np.nan, np.inf], [-np.inf, 0.1]]), exact=float("nan")
    ),
    "empty arrays": generation(similarity=np.zeros((0, 0)), relevance=np.zeros(0, np.float32)),
    "odd characters": generation(answer=said("\\ud800 \u2028 \x00 ü"), told='"}\n{'),
    "other choices": generation(parameters=Parameters(n_samples=3, reading="strict")),
    **{f"without {need}": without(FULL, need) for need in ("samples", "answer.entropies")},
}


@pytest.mark.parametrize("name", ODD)
def test_every_record_comes_back(tmp_path, name):
    (back,) = again(tmp_path, ODD[name])
    same(ODD[name], back)


def test_half_a_character_comes_back_as_one_that_is_unknown(tmp_path):
    (back,) = again(tmp_path, generation(answer=said("\ud800 \\ud800 \\\udfff")))
    assert back.answer.text == "\ufffd \\ud800 \\\ufffd"


def test_words_about_an_answer_that_an_earlier_version_kept_unread_are_read(tmp_path):
    def unread(reply: Reply) -> Reply:
        return replace(reply, text=reply.raw, raw=None, missing=None)

    words = {n: of if n in GIVEN else tuple(map(unread, of)) for n, of in FULL.probes.items()}
    (back,) = again(tmp_path, replace(FULL, probes=words))
    same(FULL, back)
    lost = (Reply(None, missing="refused"), *FULL.probes["p_true"])
    some = replace(FULL, probes={"p_true": lost})
    same(some, again(tmp_path, some)[0])  # nothing is read twice


def test_the_codec_takes_other_records_and_repeats_its_bytes(tmp_path):
    marks = (Mark("SAFE", "“quote”", True), Mark(None, missing="not marked"))
    assert again(tmp_path, *marks, kind=Mark) == marks
    first = (tmp_path / NAME).read_bytes()
    again(tmp_path, *marks, kind=Mark)
    assert (tmp_path / NAME).read_bytes() == first


def line(**changed: Any) -> dict[str, Any]:
    return encoded(FULL) | changed


def array(dtype: str, value: object) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [1], "values": [value]}


WRONG = {
    "unknown": (line(extra=1), "extra is 1: Unexpected"),
    "missing": ({k: v for k, v in line().items() if k != "told"}, "told: Field required"),
    "a text for a number": (line(level="20"), 'level is "20": Input should be a valid integer'),
    "True for a number": (line(level=True), "level is true"),
    "no list": (line(samples={"a": 1}), "samples is"),
    "a nested field": (line(answer=line()["answer"] | {"code": 1}), "answer.code is 1"),
    "an array of texts": (
        line(relevance={"dtype": "float64", "shape": [1], "values": ["x"]}),
        "relevance is .*an array of numbers",
    ),
    "another type": (
        line(relevance={"dtype": "object", "shape": [1], "values": [1]}),
        "relevance is .*dtype of an array must be",
    ),
    "another shape": (
        line(relevance={"dtype": "float64", "shape": [3], "values": [1.0]}),
        "cannot reshape",
    ),
    "fewer choices": (line(parameters={"n_samples": 15}), "is missing"),
    "NaN as a flag": (line(similarity=array("bool", "NaN")), "all bool"),
    "NaN as it is": (line(similarity=array("float64", float("nan"))), "as text"),
    "half a whole": (line(similarity=array("int64", 0.5)), "all int64"),
    "a choice": (line(parameters=line()["parameters"] | {"reading": "loose"}), "reading"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_line_is_refused_with_file_and_line(tmp_path, name):
    content, match = WRONG[name]
    lines = "\n".join(json.dumps(row) for row in (line(), content))
    (tmp_path / NAME).write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(ValueError, match=rf"{NAME}, line 2: .*{match}"):
        read_records(tmp_path / NAME)


def test_what_is_no_json_or_no_gzip_is_refused(tmp_path):
    for content in (b"{", b'{"a": NaN}'):
        (tmp_path / NAME).write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match="line 1"):
            read_records(tmp_path / NAME)
    (tmp_path / NAME).write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(ValueError, match="not a whole gzip file"):
        read_records(tmp_path / NAME)


# A folder that is none


def test_a_folder_that_is_no_runs_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"has no run\.json"):
        load_run(tmp_path)
    made(tmp_path / "below" / "a")
    with pytest.raises(ValueError, match=r"below it are those of below/a"):
        load_run(tmp_path)
    (tmp_path / "below" / "a" / "answers.csv").unlink()
    with pytest.raises(ValueError, match=r"no answers\.csv or answers\.parquet"):
        load_run(tmp_path / "below" / "a")
    (tmp_path / "run.json").write_text('{"trust": {}}')
    with pytest.raises(ValueError, match="not that of a benchmark"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"benchmark": {}}')
    (tmp_path / "answers.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="the columns of answers"):
        load_run(tmp_path)


def test_a_run_saved_again_leaves_no_records_of_an_earlier_one(tmp_path):
    made(tmp_path)
    save_run(replace(made(None), generations=()), tmp_path)
    assert not (tmp_path / NAME).exists() and load_run(tmp_path).generations == ()

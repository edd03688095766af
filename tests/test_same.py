"""The guard (``same/``): what it calls a difference, what it keeps, and that it asks no model."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from each import each
from fake_model import FakeModel
from same import record
from same.compare import ELSEWHERE, SAME_MACHINE, Difference, differences
from same.packing import pack
from same.tables import table_of
from saying import saying, says
from test_cli import trustlab

from trustlab import paths
from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import Encoder
from trustlab.meaning.entailment import CrossEncoderEntailment
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, CacheMiss
from trustlab.paths import FIGURES
from trustlab.records import Reply
from trustlab.runs.folder.kept import REPLIES, unpack


class Echo(FakeModel):
    """Says what it was asked."""

    def reply(self, request: Request, i: int) -> Reply:
        return Reply(request.messages[-1][1], n_tokens_in=1, n_tokens_out=1)


ASKED = Request((("user", "a cough"),), n=2, temperature=0.5)


def frame(**changed) -> pd.DataFrame:
    """Three rows with a key, a number, a count, a time and a reason."""
    columns = {
        "method": ["poc", "ce", "asp"],
        "value": [0.25, 0.5, float("nan")],
        "n": [10, 20, 30],
        "seconds": [1.0, 2.0, 3.0],
        "reason": ["", "", "0.71 [0.62]"],
    }
    return pd.DataFrame(columns | changed)


def apart(now: pd.DataFrame, tolerance=SAME_MACHINE, renamed=None, then=None) -> list[Difference]:
    """What differs between the frame and ``now``."""
    before = frame() if then is None else then
    return list(differences({"t": table_of(before)}, {"t": table_of(now)}, tolerance, renamed))


@each(
    ("changed", "column", "here", "elsewhere"),
    [
        ({}, "", True, True),
        ({"seconds": [9.0, 9.0, 9.0]}, "", True, True),  # how long it took does not count
        ({"value": [0.25, 0.5 + 4e-10, float("nan")]}, "value", True, True),
        ({"value": [0.25, 0.5 + 4e-4, float("nan")]}, "value", False, True),
        ({"value": [0.25, 0.505, float("nan")]}, "value", False, False),
        ({"value": [0.25, 0.5, 0.0]}, "value", False, False),
        ({"value": [0.25, None, None]}, "value", False, False),
        ({"n": [10, 21, 30]}, "n", False, False),
        ({"method": ["poc", "ce", "msp"]}, "method", False, False),
        ({"reason": ["", "none", "0.71 [0.62]"]}, "reason", False, False),
        ({"reason": ["", "", "0.72 [0.62]"]}, "reason", False, True),
        ({"reason": ["", "", "0.73 [0.62]"]}, "reason", False, False),
        ({"reason": ["", "", "1.71 [0.62]"]}, "reason", False, False),
    ],
)
def test_what_is_a_difference_here_and_elsewhere(changed, column, here, elsewhere):
    for tolerance, alike in ((SAME_MACHINE, here), (ELSEWHERE, elsewhere)):
        assert [d.column for d in apart(frame(**changed), tolerance)] == ([] if alike else [column])


def test_rows_columns_and_tables_that_are_gone_new_or_renamed_are_differences():
    shorter = frame().drop(index=1).reset_index(drop=True)
    (gone,), (new,) = apart(shorter), apart(frame(), then=shorter)
    assert (gone.row, gone.then, gone.now) == ("row 1", "ce, 20, ", None)
    assert (new.then, new.now) == (None, "ce, 20, ")
    now = frame().rename(columns={"value": "estimate"})
    for table in (frame()[["value", "method", "n", "seconds", "reason"]], frame().assign(x=1), now):
        assert [d.column for d in apart(table)] == ["columns"]
    assert apart(now, renamed={"value": "estimate"}) == []
    worse = now.assign(estimate=[0.25, 0.6, None])
    (found,) = apart(worse, renamed={"value": "estimate"})
    assert says(found, "t", "row 1", "ce, 20", "estimate", 0.5, 0.6)
    one, two = {"a": table_of(frame())}, {"b": table_of(frame())}
    assert len(list(differences(one, two, SAME_MACHINE))) == 2
    assert list(differences(one, two, SAME_MACHINE, {"a": "b"})) == []


# Offline


@pytest.fixture
def offline(monkeypatch, tmp_path) -> Path:
    """No model may be asked; caches stand in the folder given."""
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "1")
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    return tmp_path


def test_offline_what_is_not_kept_is_an_error_that_names_it(offline, monkeypatch):
    CachedModel(Echo(), offline / "r.sqlite", offline=False).close()
    encoder, model = Encoder(), Echo()
    with pytest.raises(LookupError, match=saying("2 text", "'a fever'")):
        encoder.encode(["a fever", "a cough"])
    assert "model" not in encoder.__dict__  # nor was it loaded
    monkeypatch.setattr(CrossEncoderEntailment, "fingerprint", "f" * 64)
    judge = CrossEncoderEntailment("a/b", cache_path=offline / "entailment.sqlite")
    with pytest.raises(LookupError, match=saying("1 pair", "('flu', 'cold')")):
        judge.probabilities([("flu", "cold")])
    for told in ("1", "replies"):
        monkeypatch.setenv("TRUSTLAB_OFFLINE", told)
        with pytest.raises(CacheMiss, match="a cough"):
            CachedModel(model, offline / "r.sqlite").generate([ASKED])
    assert model.asked == []
    assert Encoder().encode(["a fever"]).shape == (1, 384)  # replies alone may be kept
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "0")
    assert not CachedModel(Echo(), None).offline


# What is kept


def caches(folder: Path) -> Path:
    """Replies, relevances of two models and judgements."""
    folder.mkdir()
    with_replies = CachedModel(Echo(), folder / "replies.sqlite", offline=False)
    with_replies.generate([ASKED])
    with_replies.close()
    rng = np.random.default_rng(0)
    for table, n, width in (("relevances", 5, 9), ("entailment", 3, 3)):
        numbers = rng.normal(size=(n, width)).astype("<f8")
        rows = [(f"m/{i % 2}:{i:064x}", numbers[i].tobytes()) for i in range(n)]
        with closing(sqlite3.connect(folder / f"{table}.sqlite")) as store, store:
            store.execute(f"CREATE TABLE {table} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
            store.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
    return folder


def held(folder: Path) -> dict[str, list]:
    """Every row of every cache."""
    found = {}
    for table in ("replies", "relevances", "entailment"):
        with closing(sqlite3.connect(folder / f"{table}.sqlite")) as store:
            found[table] = store.execute(f"SELECT * FROM {table} ORDER BY key").fetchall()
    return found


def test_what_is_packed_comes_back_bit_for_bit_and_stays_when_made_anew_elsewhere(tmp_path):
    first, kept = caches(tmp_path / "caches"), tmp_path / "kept"
    counts = {"replies": 2, "relevances": 5, "entailment": 3}
    assert pack(first, kept) == counts
    unpack(kept, tmp_path / "again")
    assert held(tmp_path / "again") == held(first)
    pack(tmp_path / "again", tmp_path / "twice")
    files = {file.name for file in kept.iterdir()}
    assert files == {"entailment.npz", REPLIES, "relevances.npz"}
    for file in files:
        assert (kept / file).read_bytes() == (tmp_path / "twice" / file).read_bytes()
    before = (kept / "relevances.npz").read_bytes()
    with closing(sqlite3.connect(first / "relevances.sqlite")) as made, made:
        made.execute("UPDATE relevances SET value = ?", (np.float64([1, 2]).tobytes(),))
    assert pack(first, kept) == counts and (kept / "relevances.npz").read_bytes() == before


def test_offline_no_model_is_asked_past_the_cache():
    from trustlab.models.local.huggingface import HuggingFaceModel

    model = object.__new__(HuggingFaceModel)
    model.name = "embedded"
    past = pytest.raises(LookupError, match=saying("embedded", "past the cache"))
    with record.nothing_asked(), past:
        model.generate([ASKED])


@pytest.mark.slow
def test_a_replay_makes_the_committed_figures_again(tmp_path):
    refused = trustlab("replay", "--kept", tmp_path, "--out", tmp_path / "none", status=2)
    assert "keeps no replies" in refused and not (tmp_path / "none").exists()
    out = tmp_path / "out"
    told = trustlab("replay", "00_walkthrough", "--out", out)
    assert "asked of the model 0," in told
    made = {f.name: f for f in (out / "00_walkthrough" / "figures").glob("*.csv")}
    published = {f.name: f for f in FIGURES.glob("00_*.csv")}
    assert made.keys() == published.keys() and made
    for name, file in made.items():
        pd.testing.assert_frame_equal(pd.read_csv(file), pd.read_csv(published[name]), atol=2e-6)

"""The guard (``same/``): what it calls a difference, what it keeps, and that it asks no model."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from each import each
from same import guard, record
from same.compare import ELSEWHERE, SAME_MACHINE, Difference, differences
from same.packing import pack
from same.tables import read_tables, table_of, write_tables
from test_cli import trustlab

from trustlab import paths
from trustlab.folder.kept import REPLIES, unpack
from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import Encoder
from trustlab.meaning.entailment import CrossEncoderEntailment
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, CacheMiss
from trustlab.paths import FIGURES
from trustlab.records import Reply


class Echo:
    """Says what it was asked; ``asked`` counts."""

    name, revision, provides, asked = "echo", "r1", frozenset({"text"}), 0

    taught = {"set": "embedded"}

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += len(requests)
        return [[Reply(q.messages[-1][1], n_tokens_in=1, n_tokens_out=1)] * q.n for q in requests]


ASKED = Request((("user", "a cough"),), n=2, temperature=0.5)


def frame(**changed) -> pd.DataFrame:
    """Three rows with a key, a number, a count, a time and a reason."""
    columns = {
        "method": ["poc", "ce", "asp"],
        "value": [0.25, 0.5, float("nan")],
        "n": [10, 20, 30],
        "seconds": [1.0, 2.0, 3.0],
        "reason": ["", "", "fewer than 10 correct or wrong"],
    }
    return pd.DataFrame(columns | changed)


def apart(now: pd.DataFrame, tolerance=SAME_MACHINE, renamed=None, then=None) -> list[Difference]:
    """What differs between the frame and ``now``."""
    before = frame() if then is None else then
    return list(differences({"t": table_of(before)}, {"t": table_of(now)}, tolerance, renamed))


# What is a difference


def test_a_changed_number_is_told_with_its_row_and_how_long_it_took_does_not_count():
    assert apart(frame(seconds=[9.0, 9.0, 9.0])) == []
    (found,) = apart(frame(value=[0.25, 0.5001, float("nan")]))
    assert found == ("t", "row 1 (ce, 20, )", "value", 0.5, 0.5001)
    assert str(found) == "t, row 1 (ce, 20, ), value: then 0.5, now 0.5001"


@each(
    ("changed", "column"),
    [
        ({"reason": ["", "none", "fewer than 10 correct or wrong"]}, "reason"),
        ({"n": [10, 21, 30]}, "n"),
        ({"value": [0.25, 0.5, 0.0]}, "value"),
        ({"value": [0.25, None, None]}, "value"),
        ({"method": ["poc", "ce", "msp"]}, "method"),
    ],
)
@each("tolerance", [SAME_MACHINE, ELSEWHERE])
def test_reasons_keys_counts_and_what_is_missing_are_equal_everywhere(changed, column, tolerance):
    assert [found.column for found in apart(frame(**changed), tolerance)] == [column]


def test_a_missing_and_a_new_row_are_told_by_their_keys():
    shorter = frame().drop(index=1).reset_index(drop=True)
    (gone,) = apart(shorter)
    assert (gone.row, gone.then, gone.now) == ("row 1", "ce, 20, ", None)
    (new,) = apart(frame(), then=shorter)
    assert (new.then, new.now) == (None, "ce, 20, ")


def test_another_order_of_columns_an_added_and_a_renamed_one_are_differences():
    turned = frame()[["value", "method", "n", "seconds", "reason"]]
    now = frame().rename(columns={"value": "estimate"})
    for table in (turned, frame().assign(more=1), frame().set_index("method"), now):
        assert [d.column for d in apart(table)] == ["columns"]
    assert apart(now, renamed={"value": "estimate"}) == []
    worse = now.assign(estimate=[0.25, 0.6, None])
    assert [d.column for d in apart(worse, renamed={"value": "estimate"})] == ["estimate"]
    one, two = {"a": table_of(frame())}, {"b": table_of(frame())}
    found = list(differences(one, two, SAME_MACHINE))
    told = [("a", "a table", None), ("b", None, "a table")]
    assert [(d.table, d.then, d.now) for d in found] == told
    assert list(differences(one, two, SAME_MACHINE, {"a": "b"})) == []


@each(
    ("column", "step", "here", "elsewhere"),
    [
        ("confidence", 4e-10, True, True),
        ("confidence", 4e-7, False, True),
        ("confidence", 5e-6, False, False),
        ("value", 4e-10, True, True),
        ("value", 4e-4, False, True),
        ("value", 5e-3, False, False),
    ],
)
def test_how_far_a_number_may_move(column, step, here, elsewhere):
    then, now = (pd.DataFrame({column: [value, 80 * value]}) for value in (0.5, 0.5 + step))
    assert [not apart(now, t, then=then) for t in (SAME_MACHINE, ELSEWHERE)] == [here, elsewhere]


@each(
    ("then", "now", "elsewhere"),
    [
        ("0.71 [0.62, 0.80]", "0.72 [0.62, 0.80]", True),
        ("0.71 [0.62, 0.80]", "0.73 [0.62, 0.80]", False),
        ("0.71 [0.62, 0.80]", "0.71", False),
        ("7 of 12 rows", "8 of 12 rows", False),
        ("mean −0.5000", "mean 0.5000", False),
    ],
)
def test_a_number_in_a_text_moves_only_elsewhere_and_only_after_the_point(then, now, elsewhere):
    old, new = (pd.DataFrame({"shown": [text]}) for text in (then, now))
    assert len(apart(new, SAME_MACHINE, then=old)) == 1
    assert (apart(new, ELSEWHERE, then=old) == []) == elsewhere


def test_a_table_keeps_its_index_its_headings_and_every_digit(tmp_path):
    many = pd.DataFrame(
        [[1 / 3, True], [np.float32(0.1), None]],
        columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
        index=pd.Index(["x", "y"], name="method"),
    )
    twice = pd.DataFrame([[1, 2.5], [3, float("inf")]], columns=["n", "n"])
    tables = {"many": table_of(many), "twice": table_of(twice)}
    tables["series"] = table_of(pd.Series([{3, 1}, (0.5, None)], name="s"))
    assert [heading for heading, _ in tables["many"]] == ["index method", "a / 1", "a / 2"]
    assert tables["many"][1][1] == [1 / 3, float(np.float32(0.1))]
    assert tables["twice"] == [("n", [1, 3]), ("n #2", [2.5, float("inf")])]
    assert tables["series"] == [("s", ["[1, 3]", "[0.5, null]"])]
    write_tables(tables, tmp_path / "t.json.xz")
    assert read_tables(tmp_path / "t.json.xz") == tables


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
    with pytest.raises(LookupError, match=r"no vector is kept of 2 text.*, the first: 'a fever'"):
        encoder.encode(["a fever", "a cough"])
    assert "model" not in encoder.__dict__  # nor was it loaded
    monkeypatch.setattr(CrossEncoderEntailment, "fingerprint", "f" * 64)
    judge = CrossEncoderEntailment("a/b", cache_path=offline / "entailment.sqlite")
    with pytest.raises(LookupError, match=r"1 pair.* not judged, the first: \('flu', 'cold'\)"):
        judge.probabilities([("flu", "cold")])
    for told in ("1", "replies"):
        monkeypatch.setenv("TRUSTLAB_OFFLINE", told)
        with pytest.raises(CacheMiss, match="a cough"):
            CachedModel(model, offline / "r.sqlite").generate([ASKED])
    assert model.asked == 0
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


# A notebook

CELLS = {
    "params": "n = 1  # cases\nrun_dir = None",
    "setup": (
        "import matplotlib.pyplot as plt, pandas as pd, trustlab as tl\n"
        "from test_same import Echo\n"
        "from trustlab import plots\n"
        "from trustlab.models.base import Request"
    ),
    "shown": (
        "t = pd.DataFrame({'value': [n / 3]}, index=pd.Index(['poc'], name='method'))\n"
        "print('saved in', run_dir)\n"
        "display(t['value'])\n"
        "t.style.format('{:.1f}')"
    ),
    "drawn": "made = plots.save_figure(plt.figure(), t, '09_t', f'{run_dir}/figures')",
    "puts": "asked = Request((('user', 'a cough'),), n=2, temperature=0.5)",
    "asked": "len(tl.CachedModel(Echo(), STORE).generate([asked])[0])",
}
THIRD = [("index method", ["poc"]), ("value", [2 / 3])]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Writes a notebook of cells, 09_small; nothing of the shell that runs it is left behind."""
    from IPython.core.interactiveshell import InteractiveShell

    def write(cells: dict[str, str]) -> None:
        made = [nbformat.v4.new_code_cell(code, id=name) for name, code in cells.items()]
        made[0].metadata["tags"] = ["parameters"]
        whole = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Words"), *made])
        nbformat.write(whole, tmp_path / "09_small.ipynb")

    monkeypatch.setattr(record, "notebook_path", lambda name: tmp_path / f"{name}.ipynb")
    monkeypatch.setattr(record, "check_parameters", lambda *_: None)
    main = sys.modules["__main__"]
    yield write
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


def test_all_that_a_notebook_shows_and_draws_is_written_down(small, tmp_path):
    small(CELLS)
    values = {"n": 2, "STORE": str(tmp_path / "r.sqlite")}
    with record.what_is_read(tmp_path / "used"):
        tables = record.record("09_small", values, tmp_path / "run")
    assert tables == {
        "cell shown #1": THIRD,
        "cell shown #2": THIRD,
        "cell shown #3": [("text", ["saved in RUN"])],
        "figure 09_t": THIRD,
        "cell asked #1": [("text", ["2"])],
    }
    files = [f.name for f in (tmp_path / "run" / "figures").iterdir() if f.stat().st_size]
    assert files == ["09_t.csv"]  # no picture
    assert pack(tmp_path / "used", tmp_path / "kept") == {"replies": 2}  # those that were read
    small({"params": "run_dir = None", "bad": "1 / 0"})
    with pytest.raises(RuntimeError, match="09_small stopped in cell bad: ZeroDivisionError: div"):
        record.record("09_small", {}, tmp_path / "run")


def test_offline_no_model_is_asked_past_the_cache():
    from trustlab.models.huggingface import HuggingFaceModel

    model = object.__new__(HuggingFaceModel)
    model.name = "embedded"
    past = pytest.raises(LookupError, match="embedded was asked past the cache")
    with record.nothing_asked(), past:
        model.generate([ASKED])


@pytest.mark.slow
@pytest.mark.notebook
def test_what_was_kept_is_found_again_and_a_change_is_told(tmp_path):
    name, kept, runs = "06_published_tables", tmp_path / "kept", tmp_path / "runs"
    runs.mkdir()
    (tmp_path / "p.yml").write_text(f"{name}: {{draws: 500}}\n", encoding="utf-8")
    guard.keep(tmp_path / "p.yml", runs, kept, tmp_path / "scratch")
    figures = tmp_path / "scratch" / "replayed" / name / "figures"
    assert guard.tolerance_for(kept) == SAME_MACHINE
    assert guard.tolerance_for(kept, elsewhere=True) == ELSEWHERE
    scratch = tmp_path / "now"
    now = guard.recorded(tmp_path / "p.yml", scratch, kept=kept)
    found = guard.found_different(now, kept, scratch, SAME_MACHINE, figures)
    assert found == {name: []} and len(now[name]) > 12
    assert f"{name}: the same" in guard.told(found, SAME_MACHINE)
    now[name]["figure 06_chance_band"][0][1][3] += "x"
    written = scratch / name / "figures" / "06_auroc_differences.csv"
    changed = written.read_text(encoding="utf-8").replace("conditional_pmi", "pmi", 1)
    written.write_text(changed, encoding="utf-8")
    found = guard.found_different(now, kept, scratch, SAME_MACHINE, figures)[name]
    assert [(d.table, d.column) for d in found] == [
        ("figure 06_chance_band", "model"),
        ("file 06_auroc_differences.csv", "method"),
    ]
    stopped = {name: {guard.ERROR: [("text", ["it stopped"])]}}
    found = guard.found_different(stopped, kept, scratch, SAME_MACHINE)
    assert len(found[name]) == 1 and guard.told(found, SAME_MACHINE) == "it stopped"


@pytest.mark.slow
def test_a_replay_makes_the_committed_figures_again(tmp_path):
    refused = trustlab("replay", "--kept", tmp_path, "--out", tmp_path / "none", status=2)
    assert "keeps no replies" in refused and not (tmp_path / "none").exists()
    out = tmp_path / "out"
    told = trustlab("replay", "00_walkthrough", "--out", out)
    assert "replies asked of the model 0, taken from the cache" in told
    made = {f.name: f for f in (out / "00_walkthrough" / "figures").glob("*.csv")}
    published = {f.name: f for f in FIGURES.glob("00_*.csv")}
    assert made.keys() == published.keys() and made
    for name, file in made.items():
        pd.testing.assert_frame_equal(pd.read_csv(file), pd.read_csv(published[name]), atol=2e-6)

"""The guard (``same/``): what it calls a difference, what it keeps, and that it asks no model."""

from __future__ import annotations

import gzip
import lzma
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from same import guard, record
from same.compare import ELSEWHERE, SAME_MACHINE, Difference, differences
from same.packing import pack
from same.tables import read_tables, table_of, write_tables
from typer.testing import CliRunner

from trustlab import paths
from trustlab.cli import app
from trustlab.folder.kept import REPLIES, unpack
from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import READ_OFF_SCHEMA, Encoder
from trustlab.meaning.entailment import CrossEncoderEntailment
from trustlab.meaning.relevance import relevances
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, CacheMiss, export_cache, import_cache
from trustlab.paths import FIGURES
from trustlab.records import Reply
from trustlab.run_notebooks import notebook_names


class Echo:
    """Says what it was asked; ``asked`` counts."""

    name, revision, provides, asked = "echo", "r1", frozenset({"text"}), 0

    taught = {"set": "embedded"}

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked += len(requests)
        return [[Reply(q.messages[-1][1], n_tokens_in=1, n_tokens_out=1)] * q.n for q in requests]


ASKED = Request((("user", "a cough"),), n=2, temperature=0.5)
REFERENCE = paths.NOTEBOOKS / "parameters" / "published.yml"


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


def test_nothing_differs_from_itself_and_how_long_it_took_does_not_count():
    assert apart(frame()) == [] and apart(frame(seconds=[9.0, 9.0, 9.0])) == []


def test_a_changed_number_is_told_with_its_row_and_both_values():
    (found,) = apart(frame(value=[0.25, 0.5001, float("nan")]))
    assert found == ("t", "row 1 (ce, 20, )", "value", 0.5, 0.5001)
    assert str(found) == "t, row 1 (ce, 20, ), value: then 0.5, now 0.5001"


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({"reason": ["", "", "fewer than 10 right or wrong"]}, "reason"),
        ({"reason": ["", "none", "fewer than 10 correct or wrong"]}, "reason"),
        ({"n": [10, 21, 30]}, "n"),
        ({"value": [0.25, 0.5, 0.0]}, "value"),
        ({"value": [0.25, None, None]}, "value"),
        ({"method": ["poc", "ce", "msp"]}, "method"),
    ],
)
@pytest.mark.parametrize("tolerance", [SAME_MACHINE, ELSEWHERE])
def test_reasons_keys_counts_and_what_is_missing_are_equal_everywhere(changed, column, tolerance):
    assert [found.column for found in apart(frame(**changed), tolerance)] == [column]


def test_a_missing_and_a_new_row_are_told_by_their_keys():
    (gone,) = apart(frame().drop(index=1).reset_index(drop=True))
    assert (gone.row, gone.then, gone.now) == ("row 1", "ce, 20, ", None)
    (new,) = apart(frame(), then=frame().drop(index=1).reset_index(drop=True))
    assert (new.then, new.now) == (None, "ce, 20, ")
    shorter = frame(value=[0.25, 0.5, 0.75]).drop(index=0).reset_index(drop=True)
    assert [(d.row, d.column) for d in apart(shorter)][-1] == (
        "row 2 (asp, 30, fewer than 10 correct or wrong)",
        "value",
    )


def test_another_order_of_columns_and_an_added_one_are_differences():
    turned = frame()[["value", "method", "n", "seconds", "reason"]]
    assert [d.column for d in apart(turned)] == ["columns"]
    assert [d.column for d in apart(frame().assign(more=1))] == ["columns"]
    assert [d.column for d in apart(frame().set_index("method"))] == ["columns"]


def test_a_renamed_column_is_a_difference_unless_the_map_has_it():
    now = frame().rename(columns={"value": "estimate"})
    (found,) = apart(now)
    assert found.column == "columns" and "estimate" in found.now
    assert apart(now, renamed={"value": "estimate"}) == []
    worse = now.assign(estimate=[0.25, 0.6, None])
    assert [d.column for d in apart(worse, renamed={"value": "estimate"})] == ["estimate"]


def test_a_table_that_is_gone_new_or_renamed():
    one, two = {"a": table_of(frame())}, {"b": table_of(frame())}
    found = list(differences(one, two, SAME_MACHINE))
    assert [(d.table, d.then, d.now) for d in found] == [
        ("a", "a table", None),
        ("b", None, "a table"),
    ]
    assert list(differences(one, two, SAME_MACHINE, {"a": "b"})) == []


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("then", "now", "elsewhere"),
    [
        ("0.71 [0.62, 0.80]", "0.72 [0.62, 0.80]", True),
        ("0.71 [0.62, 0.80]", "0.73 [0.62, 0.80]", False),
        ("0.71 [0.62, 0.80]", "0.71 (0.62, 0.80)", False),
        ("0.71 [0.62, 0.80]", "0.71", False),
        ("7 of 12 rows", "8 of 12 rows", False),
        ("mean −0.5000", "mean −0.5004", True),
        ("mean −0.5000", "mean 0.5000", False),
    ],
)
def test_a_number_in_a_text_moves_only_elsewhere_and_only_after_the_point(then, now, elsewhere):
    old, new = (pd.DataFrame({"shown": [text]}) for text in (then, now))
    assert len(apart(new, SAME_MACHINE, then=old)) == 1
    assert (apart(new, ELSEWHERE, then=old) == []) == elsewhere


# Tables as plain data


def test_a_table_keeps_its_index_its_headings_and_every_digit(tmp_path):
    many = pd.DataFrame(
        [[1 / 3, True], [np.float32(0.1), None]],
        columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
    )
    many.index = pd.Index(["x", "y"], name="method")
    twice = pd.DataFrame([[1, 2.5], [3, float("inf")]], columns=["n", "n"])
    tables = {
        "many": table_of(many),
        "twice": table_of(twice),
        "series": table_of(pd.Series([{3, 1}, (0.5, None)], name="s")),
    }
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


def test_offline_a_reply_that_is_not_kept_is_an_error_that_shows_the_request(offline):
    CachedModel(Echo(), offline / "r.sqlite", offline=False).close()
    model = Echo()
    with pytest.raises(CacheMiss, match="a cough"):
        CachedModel(model, offline / "r.sqlite").generate([ASKED])
    assert model.asked == 0


def test_online_is_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv("TRUSTLAB_OFFLINE", raising=False)
    assert not CachedModel(Echo(), None).offline
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "0")
    assert not CachedModel(Echo(), None).offline


def test_offline_a_vector_that_is_not_kept_is_an_error_that_names_the_text(offline):
    encoder = Encoder()
    with pytest.raises(LookupError, match=r"no vector is kept of 2 text.*, the first: 'a fever'"):
        encoder.encode(["a fever", "a cough"])
    assert "model" not in encoder.__dict__  # nor was it loaded


def test_replies_alone_may_be_all_that_is_kept(offline, monkeypatch):
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "replies")
    assert Encoder().encode(["a fever"]).shape == (1, 384)
    CachedModel(Echo(), offline / "r.sqlite", offline=False).close()
    with pytest.raises(CacheMiss, match="a cough"):
        CachedModel(Echo(), offline / "r.sqlite").generate([ASKED])


def test_relevances_are_kept_in_the_place_of_vectors(offline, monkeypatch):
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "0")
    asked = [(("Fl", "u"), "I cough."), (("Gout",), "")]
    made = relevances(Encoder(cache_path=offline / semantics.VECTORS), asked)
    monkeypatch.setattr(Encoder, "_encode_new", None)  # nothing is encoded again
    again = relevances(Encoder(cache_path=offline / semantics.VECTORS), asked)
    for one, other in zip(made, again, strict=True):
        np.testing.assert_array_equal(one, other)
    with closing(sqlite3.connect(offline / semantics.VECTORS)) as kept:
        assert kept.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
    assert pack(offline, offline / "kept")["relevances"] == 2
    unpack(offline / "kept", offline / "again")
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "1")
    there = relevances(Encoder(cache_path=offline / "again" / semantics.VECTORS), asked)
    assert [len(one) for one in there] == [2, 1] and np.array_equal(there[0], made[0])


def test_offline_an_encoder_without_a_cache_reads_those_of_runs(offline, monkeypatch):
    vector = np.full(384, 384**-0.5, dtype=np.float32)
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "0")
    monkeypatch.setattr(Encoder, "_encode_new", lambda self, texts: np.stack([vector] * len(texts)))
    Encoder(cache_path=offline / semantics.VECTORS).encode(["a cough"])
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    monkeypatch.setenv("TRUSTLAB_OFFLINE", "1")
    assert (Encoder().encode(["a cough"])[0] == vector).all()


def test_offline_a_pair_that_is_not_judged_is_an_error_that_names_it(offline, monkeypatch):
    monkeypatch.setattr(CrossEncoderEntailment, "fingerprint", "f" * 64)
    judge = CrossEncoderEntailment("a/b", cache_path=offline / "entailment.sqlite")
    with pytest.raises(LookupError, match=r"1 pair.* not judged, the first: \('flu', 'cold'\)"):
        judge.probabilities([("flu", "cold")])


# What is kept


def caches(folder: Path) -> Path:
    """Replies, relevances of two models and judgements."""
    folder.mkdir()
    with_replies = CachedModel(Echo(), folder / "replies.sqlite", offline=False)
    with_replies.generate([ASKED])
    with_replies.close()
    rng = np.random.default_rng(0)
    for table, kind, n, width in (("relevances", "<f8", 5, 9), ("entailment", "<f8", 3, 3)):
        numbers = rng.normal(size=(n, width)).astype(kind)
        rows = [(f"m/{i % 2}:{i:064x}", numbers[i].tobytes()) for i in range(n)]
        store = sqlite3.connect(folder / f"{table}.sqlite")
        store.execute(f"CREATE TABLE {table} (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
        store.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
        store.commit()
        store.close()
    return folder


def held(folder: Path) -> dict[str, list]:
    """Every row of every cache."""
    found = {}
    for table in ("replies", "relevances", "entailment"):
        with closing(sqlite3.connect(folder / f"{table}.sqlite")) as store:
            found[table] = store.execute(f"SELECT * FROM {table} ORDER BY key").fetchall()
    return found


def test_what_is_packed_comes_back_bit_for_bit(tmp_path):
    first = caches(tmp_path / "caches")
    assert pack(first, tmp_path / "kept") == {"replies": 2, "relevances": 5, "entailment": 3}
    unpack(tmp_path / "kept", tmp_path / "again")
    assert held(tmp_path / "again") == held(first)
    pack(tmp_path / "again", tmp_path / "twice")
    files = {file.name for file in (tmp_path / "kept").iterdir()}
    assert files == {"entailment.npz", REPLIES, "relevances.npz"}
    for file in files:
        assert (tmp_path / "kept" / file).read_bytes() == (tmp_path / "twice" / file).read_bytes()


def test_replies_are_exported_as_xz_by_the_name(tmp_path):
    folder = caches(tmp_path / "caches")
    for name, opened in (("r.jsonl.xz", lzma), ("r.jsonl.gz", gzip)):
        export_cache(folder / "replies.sqlite", tmp_path / name)
        assert len(opened.open(tmp_path / name).readlines()) == 2
        assert import_cache(tmp_path / f"{name}.sqlite", tmp_path / name)["new"] == 2
    (tmp_path / "cut.xz").write_bytes((tmp_path / "r.jsonl.xz").read_bytes()[:-20])
    with pytest.raises(ValueError, match="not a whole xz file"):
        import_cache(tmp_path / "c.sqlite", tmp_path / "cut.xz")


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


def test_a_cell_that_fails_is_named_with_its_error(small, tmp_path):
    small({"params": "run_dir = None", "bad": "1 / 0"})
    with pytest.raises(RuntimeError, match="09_small stopped in cell bad: ZeroDivisionError: div"):
        record.record("09_small", {}, tmp_path / "run")


def test_offline_no_model_is_asked_past_the_cache():
    from trustlab.models.huggingface import HuggingFaceModel

    model = object.__new__(HuggingFaceModel)
    model.name = "embedded"
    with (
        record.nothing_asked(),
        pytest.raises(LookupError, match="embedded was asked past the cache"),
    ):
        model.generate([ASKED])


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> dict[str, Path]:
    """A notebook that asks nothing, kept: parameters, what was kept, its figures' tables."""
    folder = tmp_path_factory.mktemp("same")
    found = {name: folder / name for name in ("parameters.yml", "runs", "kept", "scratch")}
    found["parameters.yml"].write_text("06_published_tables: {draws: 500}\n", encoding="utf-8")
    found["runs"].mkdir()
    guard.keep(found["parameters.yml"], found["runs"], found["kept"], found["scratch"])
    return found | {"figures": found["scratch"] / "replayed" / "06_published_tables" / "figures"}


@pytest.mark.slow
@pytest.mark.notebook
def test_what_was_kept_is_found_again_and_a_change_is_told(kept, tmp_path):
    name = "06_published_tables"
    assert guard.tolerance_for(kept["kept"]) == SAME_MACHINE
    assert guard.tolerance_for(kept["kept"], elsewhere=True) == ELSEWHERE
    now = guard.recorded(kept["parameters.yml"], tmp_path, kept=kept["kept"])
    found = guard.found_different(now, kept["kept"], tmp_path, SAME_MACHINE, kept["figures"])
    assert found == {name: []} and len(now[name]) > 12
    assert "06_published_tables: the same" in guard.told(found, SAME_MACHINE)
    now[name]["figure 06_chance_band"][0][1][3] += "x"
    written = tmp_path / name / "figures" / "06_auroc_differences.csv"
    changed = written.read_text(encoding="utf-8").replace("conditional_pmi", "pmi", 1)
    written.write_text(changed, encoding="utf-8")
    found = guard.found_different(now, kept["kept"], tmp_path, SAME_MACHINE, kept["figures"])[name]
    assert [(d.table, d.column) for d in found] == [
        ("figure 06_chance_band", "model"),
        ("file 06_auroc_differences.csv", "method"),
    ]
    stopped = {name: {guard.ERROR: [("text", ["it stopped"])]}}
    found = guard.found_different(stopped, kept["kept"], tmp_path, SAME_MACHINE)
    assert len(found[name]) == 1 and guard.told(found, SAME_MACHINE) == "it stopped"


def test_the_map_of_renames_names_notebooks():
    renames = yaml.safe_load(guard.RENAMED.read_text(encoding="utf-8")) or {}
    assert set(renames) <= set(notebook_names())


# The repository itself


@pytest.mark.slow
@pytest.mark.notebook
def test_every_table_of_these_notebooks_is_what_it_was(tmp_path):
    """All but the four that take most of the time; ``make same`` has them, too."""
    if not (guard.KEPT / guard.ABOUT).is_file():
        pytest.skip("no reference is kept in data/replies: make same-keep")
    tolerance = guard.tolerance_for(guard.KEPT)
    names = [name for name in notebook_names() if name[:2] not in ("01", "02", "03", "04")]
    now = guard.recorded(REFERENCE, tmp_path, kept=guard.KEPT, names=names)
    found = guard.found_different(now, guard.KEPT, tmp_path, tolerance)
    assert not any(found.values()), guard.told(found, tolerance)


def test_relevances_that_are_kept_stay_when_another_processor_makes_them_again(tmp_path):
    key, file = f"model:{'0' * 64}", tmp_path / "kept" / "relevances.npz"
    with closing(sqlite3.connect(tmp_path / "relevances.sqlite")) as made, made:
        made.execute(READ_OFF_SCHEMA)
        made.execute("INSERT INTO relevances VALUES (?, ?)", (key, np.float64([1, 2]).tobytes()))
    assert pack(tmp_path, tmp_path / "kept") == {"relevances": 1}
    before = file.read_bytes()
    other, new = np.float64([1 + 1e-9, 2]).tobytes(), np.float64([3, 4]).tobytes()
    with closing(sqlite3.connect(tmp_path / "relevances.sqlite")) as made, made:
        made.execute("UPDATE relevances SET value = ?", (other,))
    assert pack(tmp_path, tmp_path / "kept") == {"relevances": 1}
    assert file.read_bytes() == before
    with closing(sqlite3.connect(tmp_path / "relevances.sqlite")) as made, made:
        made.execute("INSERT INTO relevances VALUES (?, ?)", (f"model:{'1' * 64}", new))
    assert pack(tmp_path, tmp_path / "kept") == {"relevances": 2}


def test_a_replay_without_kept_replies_is_refused(tmp_path, monkeypatch):
    empty = ["--kept", str(tmp_path), "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(app, ["replay", *empty])
    assert refused.exit_code == 2 and "keeps no replies" in refused.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_replay_makes_the_committed_figures_again(tmp_path):
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["replay", "00_walkthrough", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "replies asked of the model 0, taken from the cache" in done.output
    made = {f.name: f for f in (out / "00_walkthrough" / "figures").glob("*.csv")}
    published = {f.name: f for f in FIGURES.glob("00_*.csv")}
    assert made.keys() == published.keys() and made
    for name, file in made.items():
        pd.testing.assert_frame_equal(pd.read_csv(file), pd.read_csv(published[name]), atol=2e-6)

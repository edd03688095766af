"""A real scheduler and workers, as processes here: what a cluster gives is what one machine gives,
whoever dies meanwhile."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from asking import ask
from dask_processes import LIMIT_S, ROOT, Dask, failing, squared
from saying import saying
from test_entailment import PAIRS, save_nli
from tiny_models import save_tiny

import trustlab as tl
from trustlab import cluster
from trustlab.meaning import encoder as encoding
from trustlab.meaning.entailment import CrossEncoderEntailment
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.local import spread as spread_model
from trustlab.processes import as_they_come, beside, spread
from trustlab.prompts import render
from trustlab.runs.experiment import benchmark
from trustlab.stops import Gone, Unlike

LACK = 'Dask is not installed: pip install "trustlab[cluster]"'
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("distributed") is None, reason=LACK),
]
METHODS = ["asp", "poc", "ce", "mc_se"]


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    with Dask(tmp_path_factory.mktemp("dask"), 2) as running:
        yield running


@pytest.fixture
def used(dask: Dask) -> Iterator[cluster.Cluster]:
    cluster.use(dask.address)
    assert cluster.used is not None
    yield cluster.used
    cluster.use(None)


def test_what_workers_give_is_in_order_or_as_it_comes(used):
    calls = [(x,) for x in range(9)]
    squares = [x * x for x in range(9)]
    assert spread(squared, iter(calls), 1) == squares
    coming = list(as_they_come(squared, iter(calls), 1))
    assert sorted(coming) == squares and coming != squares
    with beside(1, squared) as begin:
        begun = [begin(squared, x) for x in range(9)]
        assert [one.result(60) for one in begun] == squares
        with pytest.raises(LookupError, match="no such thing"):
            begin(failing).result(60)
    pids = {used.call(os.getpid), *spread(os.getpid, [()] * 4, 1)}
    assert os.getpid() not in pids


def run(folder: Path, **choices: Any) -> tl.Run:
    cases = tl.load_cases("starter", n=2, seed=0)
    more = {"samples": 2, "n_jobs": 2, "model": "embedded-closed"}
    choices = more | {"cache": folder / "replies.sqlite"} | choices
    return ask(benchmark, cases, None, METHODS, [20, 100], run_dir=folder, **choices)


def test_a_run_on_a_cluster_is_the_run_of_one_machine(dask, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "_REMEMBERED", {})
    alone = run(tmp_path / "alone")
    monkeypatch.setattr(encoding, "_REMEMBERED", {})
    spread_out = run(tmp_path / "cluster", cluster=dask.address)
    for name in ("answers.csv", "confidence.csv"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("alone", "cluster"))
        assert one == other, name  # the same processor, bit by bit
    facts = spread_out.parameters
    assert (facts["cluster"], facts["cluster_hosts"]) == (dask.address, ["127.0.0.1"])
    assert "cluster" not in alone.parameters
    for fact in ("models", "replies_read", "encoder", "entailment"):
        assert facts[fact] == alone.parameters[fact], fact
    cluster.use(dask.address)
    of_workers = tl.metrics_table(spread_out)
    cluster.use(None)
    pd.testing.assert_frame_equal(of_workers, tl.metrics_table(alone))


def requests(n: int) -> list[Request]:
    views = tl.views(tl.load_cases("starter", n=n))
    return [Request(render("diagnosis", patient=v.text), 2, 0.5, 16) for v in views]


def test_a_worker_that_dies_costs_its_chunk_and_the_client_keeps_each_reply_once(
    used, dask, monkeypatch
):
    monkeypatch.setattr(spread_model, "CHUNK", 4)
    asked = requests(5)
    rows: list[Any] = [None] * len(asked)
    model = tl.open_model("embedded")

    def keep(i: int, first: int, replies: list[Any]) -> None:
        assert rows[i] is None and first == 0
        if not any(rows):
            dask.workers[0].kill()
            dask.add()
        rows[i] = replies

    assert model.generate(asked, keep=keep) == rows
    assert model.count_tokens(asked[0].messages) == rows[0][0].n_tokens_in
    cluster.use(None)
    alone = tl.open_model("embedded").generate(asked)
    assert [[r.text for r in row] for row in alone] == [[r.text for r in row] for row in rows]


def test_workers_encode_and_judge_as_this_process_does(used, tmp_path, monkeypatch):
    save_nli(tmp_path / "nli")
    texts = [f"pneumonia {i}" for i in range(9)] + ["a long text " * 90]
    monkeypatch.setattr(encoding, "_REMEMBERED", {})
    monkeypatch.setattr(encoding, "ROUND", 4)

    def values() -> tuple[Any, ...]:
        encoder, judge = tl.Encoder(), CrossEncoderEntailment(tmp_path / "nli")
        rows = judge.probabilities(PAIRS)
        loaded = "model" in vars(encoder) or "model" in vars(judge)
        return encoder.encode(texts), rows, encoder.windows(texts[-1]), judge.fingerprint, loaded

    *of_workers, loaded = values()
    assert not loaded
    cluster.use(None)
    monkeypatch.setattr(encoding, "_REMEMBERED", {})
    *alone, loaded = values()
    assert loaded and of_workers[2:] == alone[2:]
    for one, other in zip(of_workers[:2], alone[:2], strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_what_is_cut_off_is_kept_and_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(spread_model, "CHUNK", 4)
    asked = requests(10)
    file = tmp_path / "replies.sqlite"
    with Dask(tmp_path, 1) as dask:
        cluster.use(dask.address)
        try:
            with closing(CachedModel(tl.open_model("embedded"), file)) as cached:
                monkeypatch.setattr(cluster, "WAIT_S", 3.0)
                kill = threading.Thread(target=when_kept, args=(cached, dask.workers[0].kill))
                kill.start()
                with pytest.raises(Gone, match=saying(dask.address, "0/1 workers")):
                    cached.generate(asked)
                kill.join()
            monkeypatch.setattr(cluster, "WAIT_S", 60.0)
            dask.add()
            with closing(CachedModel(tl.open_model("embedded"), file)) as cached:
                n_kept = n_rows(cached)
                cached.generate(asked)
                assert 0 < n_kept < 120 == n_rows(cached)
                assert sum(call["n_made"] for call in cached.calls) == 120 - n_kept
        finally:
            cluster.use(None)


def n_rows(cached: CachedModel) -> int:
    count = "SELECT count(*) FROM replies WHERE value LIKE '%text%'"
    return next(iter(cached._connection.execute(count)))[0]


def when_kept(cached: CachedModel, kill: Any) -> None:
    import sqlite3

    with closing(sqlite3.connect(cached.path, timeout=30)) as connection:
        while not next(connection.execute("SELECT count(*) > 20 FROM replies"))[0]:
            time.sleep(0.01)
    kill()


# Workers that do not fit


def test_workers_of_other_code_weights_or_threads_end_the_run(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(ROOT / "trustlab", other / "trustlab")
    (other / "data").symlink_to(ROOT / "data")
    with (other / "trustlab" / "levels.py").open("a") as file:
        file.write("# another\n")
    homes = [tmp_path / "one", tmp_path / "two"]
    for spread_of_weights, home in zip((0.02, 0.03), homes, strict=True):
        home.mkdir()
        save_tiny(home / "model", initializer_range=spread_of_weights)
    with Dask(tmp_path, 0) as dask:
        dask.add(path=other)
        with pytest.raises(Unlike, match=saying("trustlab", "127.0.0.1", "at this process")):
            cluster.use(dask.address)
        dask.workers[0].kill()
        for home in homes:
            dask.add(cwd=home)
        workers = with_workers(dask, 2)
        with pytest.raises(Unlike, match=saying("revision", "at tcp://127.0.0.1:")):
            tl.open_model("hf:./model")
        with pytest.raises(Unlike, match=saying("worker tcp://127.0.0.1:", "./none")):
            tl.open_model("hf:./none")
        dask.add(threads=2)
        end = time.monotonic() + LIMIT_S
        with pytest.raises(Unlike, match=saying("threads", "--nthreads 1")):
            while time.monotonic() < end:
                workers.workers()
    cluster.use(None)


def with_workers(dask: Dask, n: int) -> cluster.Cluster:
    """The cluster, used, once it has so many workers."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            cluster.use(dask.address)
            assert cluster.used is not None
            if len(cluster.used.workers()) == n:
                return cluster.used
        except Unlike:  # the killed one is not yet missed
            pass
        time.sleep(0.2)
    raise AssertionError("the workers do not come")


def test_without_a_scheduler_or_a_worker_a_run_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "WAIT_S", 1.0)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Gone, match=saying(nobody, "no scheduler")):
        cluster.use(nobody)
    secret = nobody.replace("tcp", "tls")
    with pytest.raises(
        ValueError, match=saying(secret, "certificates", "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY")
    ):
        cluster.use(secret)
    with Dask(tmp_path, 0) as dask:
        with pytest.raises(Gone, match=saying(dask.address, "0/1 workers")):
            cluster.use(dask.address)
        dask.add()
        monkeypatch.setattr(cluster, "WAIT_S", 60.0)
        cluster.use(dask.address)
        assert cluster.used is not None
        dask.processes[0].kill()
        with pytest.raises(Gone, match=saying(dask.address)):
            cluster.used.call(time.sleep, 5)
    cluster.use(None)

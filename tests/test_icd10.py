"""The kept reading of ICD-10-CM's names: the same as a fresh one, and never a torn or another."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trustlab.knowledge import icd10
from trustlab.knowledge.icd10 import Place, Places

FEW: Places = {
    frozenset(["bullous", "impetigo"]): [Place("L01.03", True)],
    frozenset(["impetigo"]): [Place("L01.0", True), Place("", False, True)],
    frozenset(): [Place("L01.00", False)],
}


def forget() -> None:
    icd10._places.cache_clear()
    icd10.vocabulary.cache_clear()


@pytest.fixture
def fresh(monkeypatch, tmp_path) -> Iterator[list[str]]:
    """An empty cache folder; a mark for each time that the terminology, here a small one, is
    read."""
    times: list[str] = []

    def read() -> Places:
        times.append("read")
        return dict(FEW)

    monkeypatch.setattr(icd10, "_read", read)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield times
    forget()


def kept_file(folder: Path) -> Path:
    (file,) = (folder / "cache" / "trustlab").glob("icd10cm-*.json")
    return file


def test_the_kept_reading_is_a_fresh_one_name_by_name_in_its_order(tmp_path):
    places = icd10._read()
    file, key = tmp_path / "x.json", icd10._key()
    file.write_text(icd10._as_text(places, key), encoding="utf-8")
    kept = icd10._stored(file, key)
    assert kept is not None and list(kept.items()) == list(places.items())
    assert len(kept) > 25_000 and all(type(p) is Place for of in kept.values() for p in of)


def test_it_is_read_once_and_kept_for_the_next_process(fresh, tmp_path):
    assert icd10._places() == FEW and icd10._places() == FEW and fresh == ["read"]
    forget()  # as another process begins
    assert icd10._places() == FEW and fresh == ["read"]
    assert icd10.has_name("Impetigo") and icd10.vocabulary() == {"bullous", "impetigo"}


def of_another_key(file: Path) -> None:
    file.write_text(icd10._as_text({frozenset(["x"]): []}, "1.4.0-another"), encoding="utf-8")


def one_letter(file: Path) -> None:
    file.write_text(file.read_text().replace("L01.03", "L01.04"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "torn": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "its first line alone": lambda file: file.write_bytes(file.read_bytes().split(b"\n")[0]),
    "one letter": one_letter,
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
    "no UTF-8": lambda file: file.write_bytes(b"\xff\xfe" + file.read_bytes()),
    "another's JSON": lambda file: file.write_text("{}"),
    "two ends": lambda file: file.write_bytes(file.read_bytes() * 2),
    "of another version, renamed": of_another_key,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_torn_or_another_file_is_made_again(name, fresh, tmp_path):
    icd10._places()
    file = kept_file(tmp_path)
    whole = file.read_bytes()
    DAMAGE[name](file)
    forget()
    assert icd10._places() == FEW and fresh == ["read", "read"]
    assert kept_file(tmp_path).read_bytes() == whole


def test_other_rules_or_another_release_have_a_key_of_their_own(monkeypatch, tmp_path):
    before = icd10._key()
    monkeypatch.setattr(icd10, "version", lambda _: "1.6.0")
    assert icd10._key().partition("-")[0] == "1.6.0"
    assert icd10._key().partition("-")[2] == before.partition("-")[2]
    shutil.copytree(icd10.PACKAGE, tmp_path / "trustlab")
    monkeypatch.setattr(icd10, "PACKAGE", tmp_path / "trustlab")
    assert icd10._key().partition("-")[2] == before.partition("-")[2]
    for name in ("knowledge/words/diagnoses.yml", "knowledge/icd10.py", "records.py"):
        with (tmp_path / "trustlab" / name).open("a", encoding="utf-8") as changed:
            changed.write("\n")
        after = icd10._key().partition("-")[2]
        assert after != before.partition("-")[2]
        before = icd10._key()


def test_the_rules_are_all_files_of_ours_that_read_a_name():
    seen = set()
    icd10.read_name.cache_clear()
    sys.setprofile(lambda frame, *_: seen.add(frame.f_code.co_filename))
    try:
        icd10._name_words("Chronic lymphocytic leukaemia (CLL), type II, of B-cell")
        icd10._name_words("Non-infective colitis due to Crohn's disease, unspecified")
    finally:
        sys.setprofile(None)
    rules = {str(file) for part in icd10.RULES for file in icd10.PACKAGE.glob(part)}
    assert {f for f in seen if f.startswith(str(icd10.PACKAGE))} <= rules
    names = {Path(file).name for file in rules}
    assert {"icd10.py", "disease_names.py", "same_diagnosis.py", "diagnoses.yml"} <= names


def a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cache").write_text("no folder")


def a_folder_of_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "cache" / "trustlab" / f"icd10cm-{icd10._key()}.json").mkdir(parents=True)


def full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(text: str, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trustlab.paths.save_text", save)


@pytest.mark.parametrize("place", [a_file, a_folder_of_its_name, full])
def test_where_nothing_can_be_kept_each_process_reads_anew(place, fresh, tmp_path, monkeypatch):
    place(tmp_path, monkeypatch)
    for times in (1, 2):
        forget()
        assert icd10._places() == FEW and len(fresh) == times


@pytest.mark.parametrize("named", ["cache", None])
def test_without_a_home_it_is_kept_with_the_runs(named, fresh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(icd10.paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where no home is known
    if named:
        monkeypatch.setenv("XDG_CACHE_HOME", named)  # a relative path, which is to be ignored
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
    assert icd10._places() == FEW
    assert [file.name for file in tmp_path.iterdir()] == ["runs"]
    assert [f.name for f in (tmp_path / "runs").iterdir()] == [f"icd10cm-{icd10._key()}.json"]


def _many_times(folder: str) -> int:
    """How often one process of several finds another reading than the whole one."""
    file, text = Path(folder) / "one.json", icd10._as_text(FEW, "k")
    wrong = 0
    for _ in range(200):
        icd10.paths.save_text(text, file)
        wrong += icd10._stored(file, "k") not in (FEW, None)
    return wrong


def test_processes_may_keep_it_at_once(tmp_path):
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(_many_times, [str(tmp_path)] * 3) == [0, 0, 0]
    assert icd10._stored(tmp_path / "one.json", "k") == FEW
    assert [file.name for file in tmp_path.iterdir()] == ["one.json"]

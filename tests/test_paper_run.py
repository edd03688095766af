"""All notebooks from the paper's file of parameters on a few cases, with a server that replies
in form and tiny models made here."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fake_model import OPTIONS, medconf_reply
from openai_server import Server
from test_cli import trustlab
from tiny_models import EOS, byte_level, byte_tokenizer, save_tiny

from trustlab import paths
from trustlab.cli.plan import StandIn
from trustlab.cli.run_notebooks import notebook_names
from trustlab.models.base import Request
from trustlab.paths import NOTEBOOKS, ROOT
from trustlab.prompts import CHAT, names

FILE = NOTEBOOKS / "parameters" / "paper.yml"
DATA = ROOT.parent / "shared" / "datasets"
QUESTIONS = "medqa/data_clean/questions/US/4_options/phrases_no_exclude_test.jsonl"
ILLS = ("Pneumonia", "URTI", "GERD", "Anemia", "Bronchitis", "Influenza", "Asthma")
KIND_OF = {
    CHAT.render(name, options=options)[-1][1].splitlines()[-1]: name
    for name in names()
    for options in OPTIONS
}


FEW = {"n": 6, "samples": 2, "n_samples": [2], "max_turns": 3}


def on_few_cases(folder: Path) -> Path:
    """The paper's file with fewer cases, samples, levels and questions, and no trial."""
    values = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for section in (of for name, of in values.items() if "samples" in of):
        section |= {name: few for name, few in FEW.items() if name in section} | {"trial": False}
        if "max_turns" not in section:  # a consultation has questions, and no levels
            section["levels"] = section.get("levels", [60, 100])[-2:]
    values["09_large_models"]["n"] = 40  # as few as say whether texts are copies
    file = folder / "paper.yml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return file


def reply(messages: list[dict[str, str]], j: int) -> str:
    """What the server's model says to a prompt, in the printed form, as its ``j``-th choice."""
    user = messages[-1]["content"]
    kind = KIND_OF.get(user.splitlines()[-1], "diagnosis")
    rng = np.random.default_rng(list(hashlib.sha256(f"{user}{j // 2}".encode()).digest()))
    if kind == "keyword":
        return f"[{next((ill for ill in ILLS if ill in user), ILLS[0])}]"
    if kind in ("profile", "evidence"):
        return medconf_reply(kind, user, rng)
    if kind in ("ce", "diagnosis"):
        return f"[{rng.integers(101) if kind == 'ce' else rng.choice(ILLS)}]"
    asked = Request((("user", user),), purpose=kind)
    return StandIn("stub", ILLS).generate([asked])[0][0].text or ""


def readable(body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The server's answer with replies that can be read in place of the toy's."""
    for j, choice in enumerate(answer["choices"]):
        said = reply(body["messages"], j)
        choice["message"]["content"], choice["finish_reason"] = said, "stop"
        if choice["logprobs"]:
            tokens = re.findall(r"[\[\]]|[^\[\]]+", said)
            choice["logprobs"] = {"content": [Server.plain(token.encode()) for token in tokens]}
    return answer


def tiny_llama(folder: Path) -> Path:
    """Random weights, but for a chain from the end of any prompt: "[", an illness, "]", the end."""
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = byte_tokenizer(words=ILLS)
    small = dict.fromkeys(["num_hidden_layers", "num_attention_heads", "num_key_value_heads"], 1)
    save_tiny(folder, tokenizer=tokenizer, max_position_embeddings=16384, **small)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    chain = [[">"], ["["], [byte_level(ill) for ill in ILLS], ["]"], [EOS]]
    ids = [tokenizer.convert_tokens_to_ids(tokens) for tokens in chain]
    with torch.no_grad():
        seen, said = model.get_input_embeddings().weight, model.lm_head.weight
        said.mul_(0.1)
        for axis, (before, after) in enumerate(pairwise(ids)):
            seen[before] = 40 * torch.eye(seen.shape[1])[axis]
            said[after, axis] += 4
    model.save_pretrained(folder)
    return folder


def tiny_bert(folder: Path, kind: str, **config: Any) -> Path:
    """A tiny BERT of one layer with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(ill.lower() for ill in ILLS)]
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"intermediate_size": 16, "vocab_size": len(words), "initializer_range": 1.0}
    made = getattr(transformers, kind)(transformers.BertConfig(**shape, **config))
    made.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.realdata
def test_all_notebooks_run_from_the_papers_file(tmp_path, monkeypatch):
    if not DATA.is_dir():
        pytest.skip("the data sets are not at ../shared/datasets beside the repository")
    library = tmp_path / "library.jsonl"
    passages = [{"id": ill, "title": ill, "content": f"{ill} brings a fever."} for ill in ILLS]
    library.write_text("\n".join(map(json.dumps, passages)), encoding="utf-8")
    labels = dict(enumerate(["entailment", "neutral", "contradiction"]))
    given = {
        "gpt": "openai:gpt", "llama": f"hf:{tiny_llama(tmp_path / 'llama')}",
        "judge": "judge:openai:judge", "paraphraser": "openai:words", "library": library,
        "nli": tiny_bert(tmp_path / "nli", "BertForSequenceClassification", id2label=labels),
        "medbert": tiny_bert(tmp_path / "medbert", "BertModel"),
        "ddxplus": DATA / "ddxplus", "meditod": DATA / "meditod", "medqa": DATA / QUESTIONS,
    }  # fmt: skip
    runs = tmp_path / "runs"
    monkeypatch.setattr(paths, "RUNS", runs)
    pairs = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    with Server(plan=lambda k, body: partial(readable, body)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "stub")
        # 5: the tiny model gives no scores.
        trustlab("run", "all", "--params", on_few_cases(tmp_path), *pairs, status=5)
    asked = {}
    for name in notebook_names():
        found = json.loads((runs / name / "manifest.json").read_text(encoding="utf-8"))
        assert found["ok"] and '"$' not in json.dumps(found["parameters"]), name
        each = [found, *found.get("runs", {}).values()]
        asked[name] = [of["benchmark"] for of in each if "benchmark" in of]
    del asked["00_walkthrough"]  # keeps its defaults
    for facts in sum(asked.values(), []):
        assert {of["demonstrations"] for of in facts["prompts"].values()} == {0}
        assert facts["grader"] == "judge judge"
        assert facts["retriever"] is None or "passages=7" in facts["retriever"]
    (facts,) = asked["01_benchmark"]
    assert facts["dataset"] == ["ddxplus", "meditod", "medqa"] and len(facts["models"]) == 2
    assert facts["entailment"]["name"] == str(given["nli"]) and not facts["entailment"]["stand_in"]
    assert (
        facts["relevance_context"] == "full" and str(given["medbert"]) in facts["medical_encoder"]
    )
    assert [of["cases"] for of in asked["04_consultation"]] == [6]
    few = facts["replies_read"]["gpt"]
    assert all(row["read"] == row["asked"] for row in few.values())

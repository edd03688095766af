"""The cards of the embedded models: what the command makes of the numbers beside them."""

from __future__ import annotations

from each import each

from training import card as program
from trustlab.models.by_name import EMBEDDED


@each("name", EMBEDDED)
def test_the_card_beside_a_model_is_what_the_command_writes(name: str):
    folder = EMBEDDED[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card == program.made_of(name, folder), f"python -m training.card --name {name}"
    assert 4_000_000 < program.n_parameters(folder / "model.safetensors") < 6_400_000

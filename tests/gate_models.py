"""Models whose replies are hard to read, by their manner, for the notebook of ``test_gate``."""

from __future__ import annotations

from dataclasses import replace

from fake_model import FakeModel

from trustlab.models.base import Request
from trustlab.records import Reply

NASTY = "--> <script>alert(1)</script> | a * b | `</pre>` $x$ \u202e\n\n# No\n<!-- end -->"
KINDS = (NASTY, "I am only a model.", "[Insert diagnosis here]")


class Manner(FakeModel):
    """``plain``: as asked. ``chatty``: in prose with bold names; one diagnosis of four and three
    scores of four cannot be read. ``never``: words that nobody reads. ``cut``: every reply runs out
    of tokens."""

    def reply(self, request: Request, i: int) -> Reply:
        found = super().reply(request, i)
        of_four = int(self.rng(request, i + 1000).random() * 4)
        if self.name == "cut":
            return replace(found, finish="length")
        if self.name == "never":
            return replace(found, text=KINDS[min(of_four, 2)], trace=None)
        if self.name == "chatty":
            said = str(found.text).strip("[]")
            text = {
                "diagnosis": "Hard to say." if of_four == 0 else f"Most likely it is **{said}**",
                "samples": f"**{said}**",
                "ce": f"Confidence: {said}" if of_four == 0 else "Rather sure.",
            }[request.purpose]
            return replace(found, text=text, trace=None)
        return found

"""A reply that ran out of tokens is no answer: missing, and neither right nor wrong."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from asking import ask
from each import each
from fake_consultation import told_case
from fake_medconf import PASSAGES, PATIENT, Scripted, evidence_json, profile_json
from fake_model import FakeEncoder, FakeModel, made_cases, prompt_of
from fake_panel import marks_json, opinion, plan_json
from generations import generation
from made_graders import NO_TABLE, PNEUMONIA, SaysTrue

from studies.graders import grade
from studies.robustness import either_named
from trustlab.agents.medconf import MedConf, assess
from trustlab.agents.patient import UNKNOWN, parts_of, read_answer
from trustlab.confidence import METHODS
from trustlab.graders import JudgeGrader, SynonymGrader
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.wrapper import TextOnly
from trustlab.parsing.agents import (
    read_enough,
    read_flags,
    read_opinion,
    read_plan,
    read_question,
    read_ratings,
    read_wording,
)
from trustlab.parsing.reply import Unreadable, diagnosis_reply
from trustlab.records import CUT as REASON
from trustlab.records import SEVERAL, Reply, TokenTrace
from trustlab.runs.experiment import benchmark
from trustlab.runs.measures import metrics_table

ASK = Request((("user", "Cough?"),), max_tokens=2)
WANT = frozenset({"logprobs", "distributions"})
OPENED = {"provides": WANT}
IDS = [c.case_id for c in made_cases(4)]


class Cut(FakeModel):
    """Diagnoses by case: "cut" says ``text`` and runs out of tokens, "unread" has no brackets,
    "doubt" has two names in them.

    All other cases are [Influenza], and so are all samples.
    """

    def __init__(self, text: str = "", **cases: str) -> None:
        super().__init__("cutter")
        self.cases = cases
        doubt = "[Influenza], given [fever]", "stop"
        self.says = {"cut": (text, "length"), "unread": ("Influenza?", "stop"), "doubt": doubt}

    def reply(self, request: Request, i: int) -> Reply:
        found = super().reply(request, i)
        if prompt_of(request) != "diagnosis":
            return found
        user = request.messages[-1][1]
        how = next((how for case_id, how in self.cases.items() if f"I am {case_id}." in user), "")
        text, end = self.says.get(how if self.ends(request, i) else "", ("[Influenza]", "stop"))
        trace = self.trace(text, request, self.rng(request, i)) if text else None
        return replace(found, text=text, finish=end, trace=trace)

    def ends(self, request: Request, i: int) -> bool:
        return request.n == 1


def run_of(model: FakeModel, **options):
    """Four patients with influenza who say who they are, and what ``model`` says of them."""
    flu = [replace(c, diagnosis="Influenza", accepted=("Influenza",)) for c in made_cases(4)]
    opened = [(replace(c.statements[0], text=f"I am {c.case_id}."), *c.statements[1:]) for c in flu]
    cases = [replace(c, statements=told) for c, told in zip(flu, opened, strict=True)]
    how = {"methods": ["poc", "ce", "information_level"], "samples": 3, "encoder": FakeEncoder()}
    return cases, ask(benchmark, cases, [model], **{**how, **options})


SHARES = ["accuracy_asked", "accuracy", "accuracy_read"]
POOLED = "metric == 'accuracy' and level == 'pooled'"


@each("text", ["", "[Influenza]"])
def test_a_cut_answer_is_neither_right_nor_wrong_and_an_unreadable_one_is_wrong(text: str) -> None:
    cases, run = run_of(Cut(text, a="cut", b="unread"), levels=[1, 100])
    answers = run.answers.set_index(["case_id", "level"])
    for level in (1, 100):
        cut, unread, *read = (answers.loc[(i, level)] for i in IDS)
        assert math.isnan(cut["correct"]) and cut["missing"] == REASON, cut.to_dict()
        assert not isinstance(cut["answer"], str)
        assert (unread["correct"], unread["missing"]) == (0, "")
        assert [row["correct"] for row in read] == [1, 1]
    why = run.confidence.set_index("case_id")["missing"]
    assert set(why["a"]) == {REASON} and set(why["b"]) == {"unreadable answer"}
    row = metrics_table(run).query(POOLED).iloc[0]
    assert (row["value"], row["n"], row["n_missing"]) == (4 / 6, 6, 2)
    assert "2 answers missing" in row["missing"]
    for grader in ("exact", JudgeGrader(FakeModel(), knowledge=NO_TABLE)):
        again = grade(run.answers, grader, cases).set_index(["case_id", "level"])["correct"]
        assert math.isnan(again["a", 100]) and again["b", 100] == 0
    named = either_named(run.answers, dict.fromkeys(IDS, tuple(cases[:2])), SynonymGrader())
    named = named.set_axis(run.answers["case_id"])
    assert named["a"].isna().all() and (named["b"] == 0).all()


def test_an_answer_in_doubt_is_neither_right_nor_wrong_and_counts_as_unread() -> None:
    _, run = run_of(Cut(a="doubt", b="unread"), levels=[100])
    doubt, unread, *_ = run.answers.to_dict("records")
    assert math.isnan(doubt["correct"]) and doubt["missing"] == SEVERAL
    assert unread["correct"] == 0
    assert set(run.confidence.query("case_id == 'a'")["missing"]) == {SEVERAL}
    assert run.parameters["replies_read"]["cutter"]["diagnosis"]["unread"] == 2
    shares = metrics_table(run).query("level == 'pooled'").set_index("metric")
    assert list(shares.loc[SHARES, "n"]) == [4, 3, 2]
    assert list(shares.loc[SHARES, "value"]) == [2 / 4, 2 / 3, 1]


def test_cut_samples_are_dropped_and_the_rest_count(monkeypatch) -> None:
    monkeypatch.setattr(Cut, "ends", lambda self, request, i: request.n > 1 and i > 0)
    _, run = run_of(Cut("[Influenza], but", a="cut"), levels=[100])
    assert list(run.answers["n_samples"]) == [1, 3, 3, 3]
    told = run.confidence.query("method == 'poc'").set_index("case_id")["missing"]
    assert told["a"].startswith("fewer than 2") and (told.drop("a") == "").all()


def stated(name: str, *replies: Reply) -> str:
    """Why a self-stated confidence is missing, or its value."""
    found = METHODS[name].evaluate(generation(answer=Reply("Flu"), probes={name: replies}))
    return found.missing or f"the value {found.confidence}"


def stepped(step: str, reply: Reply, **off: bool) -> str:
    """Why MedConf's assessment is missing, or its score."""

    class Shelf:
        revision = "one"

        def search(self, query: str, k: int = 15):
            return list(PASSAGES[:k])

    (found,) = assess(Scripted(**{step: reply}), [(PATIENT, "Influenza")], Shelf(), MedConf(**off))
    return found.missing or f"the score {found.score}"


def refused(read, *args) -> str:
    try:
        return f"the value {read(*args)}"
    except Unreadable as error:
        return str(error)


SCORED = json.dumps({"confidence": {"reasoning": "It fits.", "confidence_score": "<<70>>"}})
FIVE = "G1: [80] G2: [85] G3: [75] G4: [90] G5: [70]"
MARK = marks_json("rating", "SAFE"), marks_json("flag", "FINE")
READERS = {
    "diagnosis": ("[flu]", lambda r: diagnosis_reply(r).missing or "the value flu"),
    "ce": ("[85]", lambda r: stated("ce", r)),
    "cot_ce": ("It fits. [85]", lambda r: stated("cot_ce", r)),
    "topk_ce": (FIVE, lambda r: stated("topk_ce", r)),
    "p_true": ("True", lambda r: stated("p_true", r, r, r)),
    "keyword": ("[flu]", lambda r: stepped("keyword", r)),
    "profile": (profile_json(), lambda r: stepped("profile", r)),
    "profile in prose": ("Look for fever.", lambda r: stepped("profile", r, structure=False)),
    "evidence": (evidence_json(), lambda r: stepped("evidence", r)),
    "score without a profile": (SCORED, lambda r: stepped("evidence", r, profile=False)),
    "opinion": (opinion("flu"), lambda r: read_opinion(r)[2] or "an opinion"),
    "plan": (plan_json("aspirin"), lambda r: refused(read_plan, r)),
    "ratings": (MARK[0], lambda r: read_ratings(r, 1, "")[0].missing or "a mark"),
    "flags": (MARK[1], lambda r: read_flags(r, 1, "")[0].missing or "a mark"),
    "doctor's question": ("[Any pain?]", lambda r: refused(read_question, r)),
    "own decision": ("[enough]", lambda r: refused(read_enough, r)),
    "patient's answer": ("[Yes.]", lambda r: read_answer(r, told_case(), "Any pain?").why),
    "wording": ("[Have you any pain?]", lambda r: refused(read_wording, r)),
    "judge": ("True", lambda r: judged(r)),
}


def judged(reply: Reply) -> str:
    """Why a judge has not graded, or its grade."""
    judge = SaysTrue()
    judge.reply = reply
    (found,) = JudgeGrader(judge, knowledge=NO_TABLE).grade(["Grippe"], [PNEUMONIA])
    return found.missing or f"the grade {found.correct}"


def test_every_reader_takes_a_cut_reply_for_none_and_says_why() -> None:
    """Each reads a whole reply; of the same cut off, or of nothing, it says the tokens ran out."""
    wrong = []
    for name, (text, read) in READERS.items():
        if REASON in read(Reply(text)):
            wrong.append(f"{name}: a whole reply is refused: {read(Reply(text))}")
        for said in (text, f"{text} but", ""):
            if REASON not in (told := read(Reply(said, finish="length"))):
                wrong.append(f"{name}: {said[:40]!r} cut off gives {told!r}")
    assert not wrong, "\n".join(wrong)


def test_whole_replies_count_and_cut_ones_keep_their_words_unread() -> None:
    whole, cut = (Reply("True"), Reply("False")), (Reply("True", finish="length"),) * 3
    assert stated("p_true", *whole, *cut) == "the value 0.5"
    assert stated("p_true", whole[0], *cut).startswith("fewer than 2")
    case = told_case()
    words = parts_of(case.statements[1])[1]
    assert read_answer(Reply(f"[{words}]"), case, "What else?").words == words
    assert read_answer(Reply(f"[{words}]", finish="length"), case, "What else?").words == UNKNOWN
    trace = TokenTrace(("[flu", "]", ", but"))
    found = diagnosis_reply(Reply("[flu], but", trace, 9, 3, finish="length"))
    assert (found.text, found.trace, found.missing) == (None, None, REASON)
    assert (found.raw, found.finish, found.n_tokens_out) == ("[flu], but", "length", 3)


def test_a_servers_reply_cut_before_any_text_is_cut_and_kept(server, opened, tmp_path) -> None:
    """As where a thinking model spends all on its thought: content null, finish "length"; kept."""
    server.plan = lambda k, body: "null content"
    for want, model in ((WANT, opened()), (frozenset(), TextOnly(opened()))):
        put = [replace(ASK, want=want)]
        kept, before = CachedModel(model, tmp_path / f"{len(want)}.sqlite"), len(server.chats())
        first, again = (kept.generate(put)[0][0] for _ in range(2))
        assert (first.finish, diagnosis_reply(first).missing) == ("length", REASON)
        assert (first.text, first.missing, again.text, again.finish) == ("", None, "", "length")
        assert len(server.chats()) == before + 1 and model.usage["failures"] == 0

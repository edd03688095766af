"""A form that nobody filled in is no diagnosis."""

from __future__ import annotations

from each import each

from trustlab.parsing.reply import diagnosis, diagnosis_reply
from trustlab.records import NO_DIAGNOSIS, PLACEHOLDER, Reply

REFUSED = """
Diagnosis|diagnosis|The Diagnosis|Patient's Name|Patient’s Name|Your Name|Doctor's Name|Date
Insert diagnosis here|Insert the specific viral infection here|insert_diagnosis|Name-of-disease
Your diagnosis here|Name of the disease|Specific diagnosis|The patient's most likely diagnosis
Final Answer|Disease Name (ICD-10 code)|Diagnosis 1|Disease A|<diagnosis>|Diagnosis: ...|Diagnosis:
Enter disease|Fill in the diagnosis|Write the name of the disease|diagnosis goes here|Keyword|TBD
XXX|X|x|...|___|D1|J18.9|ICD-10: J18|ICD-10-CM J18.9|SNOMED 233604007|ICD-10
"""
ACCEPTED = """
Patent ductus arteriosus|Diagnosis: Pneumonia|Influenza A|Type A influenza|Type 2 diabetes|T2D|H1N1
G6PD deficiency|HIV|COVID-19|B12 deficiency|ADD|MD|DR|XXX syndrome|Graves' disease|Still's disease
Specific phobia|Primary biliary cholangitis|Mixed connective tissue disease|Name-of-author disease
Bronchitis (J20.9)|J18.9 Pneumonia|ICD-10 J18.9: Pneumonia|Selective IgA deficiency
Possible NSTEMI / STEMI|Condition unknown|Unknown|N/A|None|No diagnosis|癌|Écho
"""


def words(table: str) -> list[str]:
    return [word for line in table.strip().splitlines() for word in line.split("|")]


@each("held", words(REFUSED))
@each("reading", ["strict", "chat"])
def test_a_placeholder_is_no_diagnosis(held: str, reading) -> None:
    for text in (f"[{held}]", f"The diagnosis is [{held}].", f"Dear Sir,\n\n[{held}]\n"):
        found = diagnosis_reply(Reply(text), reading)
        assert (found.text, found.missing) == (None, PLACEHOLDER)


@each("held", words(ACCEPTED))
@each("reading", ["strict", "chat"])
def test_a_name_is_one(held: str, reading) -> None:
    for text in (f"[{held}]", f"Dear [Patient's Name], you have [{held}]. Yours, [Your Name]"):
        found = diagnosis(text, reading)
        assert found and found.text == held


@each("text", [r"\[Croup\]", r"[Croup\]"])
@each("reading", ["strict", "chat"])
def test_an_escaped_bracket_holds_no_diagnosis(text: str, reading) -> None:
    assert diagnosis_reply(Reply(text), reading).missing == PLACEHOLDER


@each("text", ["", "see [1]"])
def test_what_holds_no_form_is_unread(text: str) -> None:
    assert diagnosis_reply(Reply(text), "strict").missing == NO_DIAGNOSIS

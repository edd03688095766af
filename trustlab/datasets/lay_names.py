"""Everyday names of diseases: what a patient or a doctor may say in place of the name in the annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from trustlab.knowledge import normalise

_TABLE = """
acute coronary syndrome: heart attack
alcohol dependence: alcoholism
allergic rhinitis: hay fever
atopic dermatitis: eczema
candidiasis: thrush, yeast infection
cerebrovascular accident: stroke, brain attack
cholelithiasis: gallstone, gall stone
chronic obstructive pulmonary disease: emphysema, smoker's lung
chronic obstructive airway disease: emphysema, smoker's lung
congestive heart failure: weak heart, fluid on the lungs
conjunctivitis: pink eye
coronavirus disease 2019: covid, corona
covid-19 virus disease: corona, coronavirus
deep vein thrombosis: blood clot, clot in the leg
diabetes mellitus: sugar disease, high blood sugar
epilepsy: epileptic
gastroenteritis: stomach flu, stomach bug, food poisoning
gastroesophageal reflux disease: acid reflux, reflux
gonorrhea: the clap
hemorrhoids: piles
herpes labialis: cold sore
herpes zoster: shingles
hypercholesterolemia: high cholesterol
hypertensive disease: high blood pressure
hypertension: high blood pressure
impacted cerumen: ear wax, earwax
infectious mononucleosis: mono, glandular fever, kissing disease
influenza: flu
ischemic stroke: stroke, brain attack
laryngotracheobronchitis: croup
lyme disease: lyme
malignant melanoma: skin cancer
malignant neoplasm of lung: lung cancer
measles: rubeola
myocardial infarction: heart attack
nephrolithiasis: kidney stone
otitis externa: swimmer's ear
otitis media: ear infection
parotitis: mumps
pediculosis capitis: head lice
pertussis: whooping cough
plantar fasciitis: heel spur
pulmonary embolism: blood clot, clot in the lung, clot in your lung
rubella: german measles
streptococcal pharyngitis: strep throat, strep
tinea pedis: athlete's foot
tuberculosis: TB
upper respiratory infection: common cold, a cold, head cold, chest cold
urinary tract infection: bladder infection, water infection
urticaria: hives
varicella: chickenpox, chicken pox
verruca vulgaris: wart
"""
LAY_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        normalise(name): tuple(normalise(one) for one in lay.split(","))
        for name, lay in (line.split(":") for line in _TABLE.strip().splitlines())
    }
)
"""Name -> its everyday names, all normalised; a list of our own, far from complete.

Words for a complaint itself are left out, although they point at a disease: "heartburn" for reflux disease, "cold" alone for
a cold, "sugar" for diabetes. Patients tell their history in them, and leaving it out would leave little of the dialogue.
"""


def lay_names(names: Iterable[str]) -> frozenset[str]:
    """The everyday names, normalised, of whatever has one of these ``names``."""
    return frozenset(lay for name in names for lay in LAY_NAMES.get(normalise(name), ()))

"""The words that tell diagnoses apart, and those that do not; spelt with ``e`` for ae and oe."""

from __future__ import annotations

DEGREES = frozenset({"mild", "moderate", "severe"})
_NEUTRAL = "disease syndrome disorder condition illness of the an in sided"
NEUTRAL = frozenset(_NEUTRAL.split())
"""Words that a longer name may have more without being another kind; but a disease is not a syndrome."""
_CAUSES = """viral bacterial fungal parasitic tuberculous septic aseptic aspiration atypical allergic infection
drug alcoholic nonalcoholic autoimmune idiopathic traumatic atraumatic ischemic hemorrhagic thrombotic embolic obstructive
nonobstructive restrictive congenital hereditary familial acquired inherited functional organic community hospital exogenous
endogenous toxic hemolytic aplastic radiation chemical"""
_SITES = """upper lower left right bilateral unilateral anterior posterior inferior superior proximal distal central peripheral
internal external medial lateral dorsal ventral cranial caudal superficial deep cortical subcortical subdural epidural
subarachnoid intracranial extracranial intracerebral supraventricular ventricular atrial aortic mitral tricuspid pulmonic
systolic diastolic extrauterine intrauterine artery vein gastric duodenal esophageal intestinal ileal jejunal colonic rectal
femoral inguinal umbilical hiatal cervical thoracic lumbar sacral renal prerenal postrenal adrenal intrahepatic extrahepatic
portal sagittal ascending descending focal generalized generalised diffuse localized localised regional cutaneous visceral
ocular oral genital"""
_STAGES = """acute subacute chronic recurrent relapsing remitting progressive paroxysmal persistent permanent intermittent
episodic early late latent active inactive primary secondary tertiary metastatic advanced terminal"""
_KINDS = """stable unstable benign malignant simple complicated uncomplicated open closed small large neonatal infantile juvenile
adult gestational type stage grade class with without nephritic nephrotic schizoid schizotypal conductive sensorineural
manic depressive bipolar unipolar papillary follicular medullary lymphocytic lymphoblastic myeloid myelogenous wet dry
exudative transudative communicating compensated decompensated typical displaced undisplaced transient reversible
irreversible microcytic macrocytic normocytic sporadic endemic epidemic penetrating blunt antepartum postpartum partial
complete incomplete threatened missed spastic flaccid insipidus mellitus ST"""
QUALIFIERS = frozenset(" ".join((_CAUSES, _SITES, _STAGES, _KINDS)).casefold().split())
"""Words that make a name another diagnosis; so do numbers, single letters ("2", "B12", "A") and :data:`PREFIXES`."""
PREFIXES = ("hyper", "hypo", "tachy", "brady", "non")
LOOKALIKES = tuple(
    frozenset(group.split())
    for group in (
        "bronchitis bronchiolitis bronchiectasis",
        "laryngitis pharyngitis laryngospasm",
        "pericarditis myocarditis endocarditis pericardium myocardium endocardium pericardial myocardial endocardial",
        "nephritis nephrosis",
        "arthritis arteritis arthrosis",
        "urethritis ureteritis",
        "dysphagia dysphasia dysphonia",
        "spondylosis spondylitis spondylolysis spondylolisthesis",
        "pneumonia pneumonitis pneumothorax",
        "pancreatitis pancreatic",
        "hepatitis hepatosis hepatoma",
        "gastritis gastroenteritis enteritis",
        "myelitis myositis myelopathy myopathy",
        "neuritis neurosis",
        "diverticulitis diverticulosis",
        "sarcoidosis sarcoma",
        "cholecystitis cholangitis cholelithiasis choledocholithiasis",
        "encephalitis encephalopathy",
        "lymphoma lymphadenitis lymphedema",
        "keratitis keratosis",
        "retinal renal adrenal",
    )
)
"""Names that look alike and are not the same; two of one line are two diagnoses, however close their letters are."""
_EXCLUSIVE = """left right bilateral|upper lower|anterior posterior inferior|superior inferior|
proximal distal|central peripheral|internal external|medial lateral|dorsal ventral|cranial caudal|
superficial deep|subdural epidural subarachnoid intracerebral|atrial ventricular|
aortic mitral tricuspid pulmonic|systolic diastolic|artery vein|
gastric duodenal esophageal ileal jejunal colonic rectal|
femoral inguinal umbilical hiatal|cervical thoracic lumbar sacral|acute subacute chronic|
paroxysmal persistent permanent|early late|active latent|primary secondary tertiary|
first second third|mild moderate severe|viral bacterial fungal parasitic|ischemic hemorrhagic|
thrombotic embolic|obstructive restrictive|congenital acquired|hereditary acquired|
functional organic|community hospital|benign malignant|open closed|simple complicated|small large|
neonatal infantile juvenile adult|nephritic nephrotic|schizoid schizotypal|wet dry|
conductive sensorineural|manic depressive|papillary follicular medullary|lymphocytic myeloid|
lymphoblastic myeloid|lymphocytic myelogenous|lymphoblastic myelogenous|exudative transudative|
penetrating blunt|partial complete|threatened missed|spastic flaccid|insipidus mellitus|
with without|disease syndrome"""
EXCLUSIVE = tuple(frozenset(group.split()) for group in _EXCLUSIVE.split("|"))
"""Words of one group rule each other out; a name with one of them is a kind of the name without."""
OPPOSITE_PREFIXES = (
    *(("", prefix) for prefix in ("non", "un", "in", "ir", "a", "de", "sub", "supra")),
    *(("", prefix) for prefix in ("pre", "post", "pseudo")),
    *(("hyper", "hypo"), ("tachy", "brady"), ("uni", "bi"), ("micro", "macro"), ("intra", "extra")),
    *(("pre", "post"), ("ante", "post"), ("endo", "exo")),
)
"""Words that differ by such a pair alone rule each other out: eclampsia and preeclampsia."""
SAME_PHRASE = {
    "nstemi": "non st elevation myocardial infarction",
    "stemi": "st elevation myocardial infarction",
    "t1dm": "type 1 diabetes",
    "t2dm": "type 2 diabetes",
    "diabetes(?! mellitus| insipidus)": "diabetes mellitus",
    "chronic obstructive pulmonary disease": "copd",
    "covid 19": "coronavirus disease 2019",
    "exacerbation of|exacerbation": "acute",
    "non ": "non",
}
"""Patterns in a normalised name -> what they are read as, in this order, to judge entailment."""
ROMAN = {numeral: str(n) for n, numeral in enumerate(("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"), 1)}
SAME_WORD = {
    **dict.fromkeys(("infectious", "infective", "infected", "infections"), "infection"),
    **dict.fromkeys(("venous", "veins"), "vein"),
    **dict.fromkeys(("arterial", "arteries"), "artery"),
    **dict.fromkeys(("bowel", "intestine", "intestines"), "intestinal"),
    **{"kidney": "renal", "lung": "pulmonary", "liver": "hepatic", "heart": "cardiac", "stomach": "gastric"},
    **{"colon": "colonic", "pancreas": "pancreatic", "esophagus": "esophageal", "nontraumatic": "atraumatic"},
}
"""Words taken for one: English and Latin names of an organ, noun and adjective."""

"""The official homes of the data sets of others: one table.

No address was opened when the table was written: no public site was in reach. Addresses, sizes and hashes are those that
the named sources give; ``verified`` says which, and what is not known is ``None``. A file is checked against what is known
when it is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SOURCE = "SOURCE.json"
"""The file that fetching leaves beside the data: where each of its files came from."""


@dataclass(frozen=True)
class File:
    """One file of a home.

    ``name`` is its place in the folder. ``urls`` are tried in order; without one the file is got by hand. ``size`` is in
    bytes, ``sha256`` in hexadecimal digits; both ``None`` where no source gives them. ``unpack`` is "zip", "tar.gz" or "none".
    """

    name: str
    urls: tuple[str, ...] = ()
    size: int | None = None
    sha256: str | None = None
    unpack: str = "none"


@dataclass(frozen=True)
class Home:
    """Where a data set lives. ``licence`` is as its source states it; ``by_hand`` are the steps that no program takes.

    ``how`` is "direct", or "by hand" or "form" with what that means. ``size`` says in words what the files' sizes do not.
    """

    what: str
    licence: str
    page: str
    how: str
    verified: str
    files: tuple[File, ...] = ()
    by_hand: str = ""
    size: str = ""


_FIGSHARE = "https://figshare.com/articles/dataset/DDXPlus_Dataset_English_/22687585"
_DDXPLUS_LICENCE = "CC BY 4.0 (figshare); the authors' README says 'under the CC-BY licence'"
_DDXPLUS_VERIFIED = (
    "sizes and sha256 of version 2 as several users recorded them independently, those of the zips in git-LFS pointers too "
    "(rrappsfree/wellnesscheck); addresses as several users give them. Version 1 had another release_conditions.json"
)
_MIRAGE = "https://raw.githubusercontent.com/Teddy-XiongGZ/MIRAGE/392943af99cd94cafd50a0de2e7fca24bbf65494/"
_MEDITOD = (
    "https://raw.githubusercontent.com/dair-iitd/MediTOD/0b7a87c3553c9056bc8371b0809811003f94b261/"
)
_MEDITOD_LICENCE = (
    "none stated in its repository; the interviews underneath (Fareez et al. 2022) are CC BY 4.0"
)
_MEDITOD_FORM = (
    "The full canonicalised set (22,503 annotated utterances) is given out on request: 1. get a UMLS licence "
    "(https://www.nlm.nih.gov/databases/umls.html), 2. fill in the form https://forms.gle/VC4ZhErgyKPzRfXQ9"
)


def _figshare(name: str, number: int, size: int, sha256: str) -> File:
    # figshare.com itself answers programs with an empty page; these two hosts give the file, by the reports of other projects
    hosts = (
        "https://ndownloader.figshare.com/files/",
        "https://api.figshare.com/v2/file/download/",
    )
    return File(name, tuple(f"{host}{number}" for host in hosts), size, sha256)


def _medrag(corpus: str, revision: str) -> str:
    return (
        f"hf download MedRAG/{corpus} --repo-type dataset --revision {revision} --include 'chunk/*' --local-dir FOLDER "
        "(hf comes with the project's environment), or git clone with git-lfs from the page. Then search FOLDER/chunk"
    )


HOMES: Mapping[str, Home] = {
    "ddxplus": Home(
        what="DDXPlus, English release: conditions, evidences and the test split (134,529 synthetic patients)",
        licence=_DDXPLUS_LICENCE,
        page=_FIGSHARE,
        how="direct",
        verified=_DDXPLUS_VERIFIED,
        files=(
            _figshare(
                "release_conditions.json",
                62561569,
                20_889,
                "56edf4682d8e86a4209fc3a33932e50ce03d1cc1fecc326c26d5ef8fa5c24890",
            ),
            _figshare(
                "release_evidences.json",
                40278013,
                120_263,
                "281c78b044ae60514e28ecc9052d08a8225dd3e2db3f00f8788b99c47b05e0c0",
            ),
            _figshare(
                "release_test_patients.zip",
                40278016,
                18_986_243,
                "ad3bb981f3453fd7abffb35cc595a1c02197e409c581bff97c1265c33eb00d23",
            ),
        ),
    ),
    "ddxplus-other-splits": Home(
        what="DDXPlus, English release: the training and validation splits (1,025,602 and 132,448 synthetic patients)",
        licence=_DDXPLUS_LICENCE,
        page=_FIGSHARE,
        how="direct",
        verified=_DDXPLUS_VERIFIED,
        files=(
            _figshare(
                "release_train_patients.zip",
                40278019,
                140_923_730,
                "174ae1d56f36a15b7144838ecd214e1e1748a5369fc90c559529b6dc6ecfb218",
            ),
            _figshare(
                "release_validate_patients.zip",
                40278022,
                18_706_053,
                "625a96855becf0efe5da339fd3d440aa99597d48f784957a97dacc3fceaa7e40",
            ),
        ),
    ),
    "meditod": Home(
        what="MediTOD, the three canonicalised dialogues that are public",
        licence=_MEDITOD_LICENCE,
        page="https://github.com/dair-iitd/MediTOD",
        how="direct; the full set: form (UMLS licence and request)",
        verified="sizes and sha256 worked out on copies of the files at commit 0b7a87c; addresses unopened",
        files=tuple(
            File(f"data/{name}", (f"{_MEDITOD}data/{name}",), size, sha256)
            for name, size, sha256 in (
                (
                    "dialogs.json",
                    802_623,
                    "61c6169c2199b9f55affae135c43562012744f09b4bb25612965ff31c6d843b0",
                ),
                (
                    "train_ids.json",
                    7,
                    "aaa48cb0cd6dd77202200a82667101b1e0221306d9aff1c94fc84e4d6a0da0ab",
                ),
                (
                    "valid_ids.json",
                    7,
                    "4bb0389e0a2576cec0b3caf87dfe71a7a3832cb0953f7e3801986492c110d12d",
                ),
                (
                    "test_ids.json",
                    7,
                    "a79b30437274252ea3d6d0eee8f72d393916c84a8a072926ef76bcc5c7ff2c3d",
                ),
            )
        ),
        by_hand=_MEDITOD_FORM,
    ),
    "meditod-raw": Home(
        what="MediTOD, all dialogues with the labels before they were canonicalised",
        licence=_MEDITOD_LICENCE,
        page="https://github.com/dair-iitd/MediTOD",
        how="direct; the full canonicalised set: form (UMLS licence and request)",
        verified="the repository's README names the folder raw_data/; its two files could not be looked at: no size, no hash",
        files=tuple(
            File(f"raw_data/{name}", (f"{_MEDITOD}raw_data/{name}",))
            for name in ("dialogs.json", "annotations.json")
        ),
        by_hand=_MEDITOD_FORM,
    ),
    "medqa": Home(
        what="MedQA (USMLE), the official test split with four options (1,273 questions), from MIRAGE's copy",
        licence="MIT (jind11/MedQA); MIRAGE's repository states none",
        page="https://github.com/jind11/MedQA",
        how="direct",
        verified="the file and the commit are in Teddy-XiongGZ/MIRAGE; size in bytes and hash are not known",
        files=(
            File(
                "data_clean/questions/US/4_options/phrases_no_exclude_test.jsonl",
                (
                    f"{_MIRAGE}rawdata/medqa/data_clean/questions/US/4_options/phrases_no_exclude_test.jsonl",
                ),
            ),
        ),
        size="about 2.1 MB",
    ),
    "medqa-full": Home(
        what="MedQA, all splits, five options too, and the textbooks: the authors' archive",
        licence="MIT (jind11/MedQA), which cannot cover the textbooks: those are commercial books",
        page="https://github.com/jind11/MedQA",
        how="by hand: Google Drive",
        verified="the link is the one in jind11/MedQA's README; name, size and hash of the file are not known",
        files=(File("medqa.zip", unpack="zip"),),
        by_hand=(
            "1. open https://drive.google.com/file/d/1ImYUSLk9JbgHXOemfvyiDiirluZHPeQw/view?usp=sharing, "
            "2. save the archive as medqa.zip in FOLDER, 3. run the command again: it unpacks it there"
        ),
        size="about 132 MB, by a user's note",
    ),
    "mirage": Home(
        what="MIRAGE, 7,663 multiple-choice questions of five medical sets, MedQA's test split (1,273) among them",
        licence="none stated in its repository; each of the five sets has its own",
        page="https://github.com/Teddy-XiongGZ/MIRAGE",
        how="direct",
        verified="sha256 as several users recorded it independently, one of them at this commit; the size in bytes is not known",
        files=(
            File(
                "benchmark.json",
                (f"{_MIRAGE}benchmark.json",),
                None,
                "6f7f08c64cd2efe02a5d0c247229813c90db345d9dd6e3a451b5d24146d0f8fa",
            ),
        ),
        size="about 4.2 MB",
    ),
    "medrag-textbooks": Home(
        what="MedRAG's corpus of 18 medical textbooks in 125,847 snippets",
        licence="none stated on its card; the texts are commercial textbooks, and the right to copy them is their publishers'",
        page="https://huggingface.co/datasets/MedRAG/textbooks",
        how="by hand: Hugging Face, after you made sure that you may",
        verified="numbers and revision as its card and its page say; the licence is missing on both",
        by_hand=_medrag("textbooks", "9c72838920a1323ffa867467d3f7aa7b36b0f994"),
        size="212 MB",
    ),
    "medrag-pubmed": Home(
        what="MedRAG's corpus of 23,898,701 PubMed titles and abstracts",
        licence="none stated on its card; abstracts may be their publishers'",
        page="https://huggingface.co/datasets/MedRAG/pubmed",
        how="by hand: Hugging Face",
        verified="numbers, size and revision as its card and its page say",
        by_hand=_medrag("pubmed", "33da3593d5756bc04c8909f170003c0b14197957"),
        size="70 GB",
    ),
    "medrag-wikipedia": Home(
        what="MedRAG's corpus of Wikipedia in 29,913,202 snippets",
        licence="none stated on its card; Wikipedia's texts are CC BY-SA",
        page="https://huggingface.co/datasets/MedRAG/wikipedia",
        how="by hand: Hugging Face",
        verified="the number of snippets as its card says; size and revision as a user recorded them",
        by_hand=_medrag("wikipedia", "d76b9ad82135e352235d17e75921c49b68fd07b2"),
        size="46 GB",
    ),
    "medrag-statpearls": Home(
        what="StatPearls as MedRAG cuts it: 301,202 snippets of 9,330 articles",
        licence="not to be passed on: 'we are not allowed to distribute the StatPearls content' (MedRAG's card)",
        page="https://huggingface.co/datasets/MedRAG/statpearls",
        how="by hand: NCBI Bookshelf, then MedRAG's script",
        verified="steps and address as MedRAG's card and code give them; Bookshelf's copy changes often, so there is no hash",
        by_hand=(
            "1. git clone https://github.com/Teddy-XiongGZ/MedRAG and go into it, 2. download "
            "https://ftp.ncbi.nlm.nih.gov/pub/litarch/3d/12/statpearls_NBK430685.tar.gz into corpus/statpearls, unpack it there, "
            "3. python src/data/statpearls.py, 4. search corpus/statpearls/chunk. Keep it to yourself"
        ),
        size="about 2 GB packed, by a user's note",
    ),
}
"""Name -> home, in the order in which people are shown them."""

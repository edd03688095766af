"""Unpacking: an honest archive arrives whole; nothing of any other is written anywhere."""

from __future__ import annotations

import stat
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest
from each import each
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trustlab.datasets.fetch import safe_place, unpack

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")  # while an archive is made


def make(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    """A zip with these members, names as they are; a name that ends in a slash is a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo("placeholder")
            info.filename = info.orig_filename = name
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def everything(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_files_and_folders_arrive_whole(tmp_path: Path) -> None:
    inner = make(tmp_path / "inner.zip", [("../b.txt", b"deep")]).read_bytes()
    members = [
        ("./", b""),
        ("a/", b""),
        ("a/b.txt", b"one"),
        ("./c d/é.txt", b""),
        ("e.zip", inner),
        ("big", bytes(3_000_000)),
    ]
    archive = make(tmp_path / "x", members)
    unpack(archive, tmp_path / "out", ratio=10**6)
    assert everything(tmp_path / "out") == ["a", "a/b.txt", "big", "c d", "c d/é.txt", "e.zip"]
    assert (tmp_path / "out/e.zip").read_bytes() == inner
    assert (tmp_path / "out/a/b.txt").read_bytes() == b"one"
    assert (tmp_path / "out/big").stat().st_size == 3_000_000


BAD_NAMES = ["/etc/passwd", "//host/x", "../x", "a/../../x", "a/..", ".."]


@each("name", BAD_NAMES)
def test_a_name_that_is_not_plainly_inside_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    archive = make(tmp_path / "x", [("fine.txt", b"one"), (name, b"two")])
    with pytest.raises(
        ValueError,
        match="x is not unpacked: a member's name is .*; allowed is a path inside",
    ):
        unpack(archive, tmp_path / "out")
    assert everything(tmp_path) == ["x"]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a/b", "a/b"),
        ("./a", "a"),
        ("a//b/", "a/b"),
        ("..a/b..c", "..a/b..c"),
        ("~/x", "~/x"),
        (" a", " a"),
    ],
)
def test_a_plain_name_keeps_its_place(name: str, place: str) -> None:
    assert safe_place(name) == PurePosixPath(place)


def test_a_file_is_no_folder_of_another(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x is not unpacked"):
        unpack(make(tmp_path / "x", [("a", b"1"), ("a/b", b"1")]), tmp_path / "out")
    assert everything(tmp_path) == ["x"]


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        info = zipfile.ZipInfo("innocent")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc")
    with pytest.raises(ValueError, match="'innocent' is a link or a device"):
        unpack(tmp_path / "x", tmp_path / "out")
    assert everything(tmp_path) == ["x"]


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    archive = make(tmp_path / "x", [("zeros", bytes(20_000_000))])
    with pytest.raises(ValueError, match="bytes in .* members; allowed are"):
        unpack(archive, tmp_path / "out")
    assert everything(tmp_path) == ["x"]


def test_many_small_members_count_together(tmp_path: Path) -> None:
    archive = make(tmp_path / "x", [(f"f{i}", b"0123456789") for i in range(10)])
    unpack(archive, tmp_path / "all", n_bytes=100)
    assert len(everything(tmp_path / "all")) == 10
    with pytest.raises(ValueError, match="holds 100 bytes in 10"):
        unpack(archive, tmp_path / "out", n_bytes=99)
    with pytest.raises(ValueError, match="in 10 members; allowed are .* and 9"):
        unpack(archive, tmp_path / "out", n_members=9)


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    content = make(tmp_path / "x", [("a", b"0123456789")]).read_bytes()
    ten, three = (10).to_bytes(4, "little"), (3).to_bytes(4, "little")
    assert content.count(ten) == 2
    (tmp_path / "x").write_bytes(content.replace(ten, three))
    with pytest.raises(ValueError, match="x is not unpacked"):
        unpack(tmp_path / "x", tmp_path / "out")
    assert everything(tmp_path) == ["x"]


def test_a_zip_whose_directory_points_nowhere_is_refused(tmp_path: Path) -> None:
    content = bytearray(make(tmp_path / "x", [("a", b"0123456789")]).read_bytes())
    end = content.index(b"PK\x05\x06")
    content[end + 16 : end + 20] = (2**20).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="is not unpacked"):
        unpack(tmp_path / "x", tmp_path / "out")


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(make(tmp_path / "x", [("a", b"secret")]).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match="encrypted"):
        unpack(tmp_path / "x", tmp_path / "out")


@each("share", [0.0, 0.3, 0.6, 0.95])
def test_a_part_of_an_archive_leaves_nothing(tmp_path: Path, share: float) -> None:
    content = make(
        tmp_path / "x", [(f"f{i}", str(i).encode() * 500) for i in range(20)]
    ).read_bytes()
    (tmp_path / "x").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="x is not unpacked"):
        unpack(tmp_path / "x", tmp_path / "out")
    assert everything(tmp_path) == ["x"]


def test_a_folder_that_exists_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match="out is there already"):
        unpack(make(tmp_path / "x", [("a", b"1")]), tmp_path / "out")
    assert everything(tmp_path / "out") == []


pieces = st.sampled_from(["..", ".", "/", "\\", "C:", "a", "~", "\0", " ", "%2e%2e", "\u2025", "é"])
text = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.one_of(text, st.lists(pieces, max_size=8).map("".join))


@settings(max_examples=300, deadline=None)
@given(first=names, second=names)
@example(first="a", second="../outside")
@example(first="a\0/../../outside", second="b")
def test_no_name_whatsoever_leads_outside_the_folder(first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        around = Path(name)
        archive = make(around / "x", [(first, b"1"), (second, b"22")])
        with suppress(ValueError):
            unpack(archive, around / "in" / "out")
        written = [p for p in around.rglob("*") if not p.is_dir()]
        assert all(p == archive or (around / "in" / "out") in p.parents for p in written)

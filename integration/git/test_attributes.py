from __future__ import annotations

import os

import pytest

from gds_lfs.git import attributes
from gds_lfs.git.repo import Repo

NAMES = [
    b"a b[1].bin",
    b"w\\x.bin",
    b"star*.bin",
    b"what?.bin",
    b" lead",
    b"trail ",
    b"#hash",
    b"!bang",
    b'"quoted"',
    b'in"side',
    b"tab\t.bin",
    b"new\nline.bin",
    b"sub/dir x/f.bin",
    "ünï.bin".encode(),
    b"\xff\xfe.bin",
    b"{a,b}",
    b"[attr]x",
    b"bell\x07",
    b"back\\\\two",
]


@pytest.fixture
def repo(top):
    return Repo.discover(top)


def test_a_literal_pattern_matches_its_file_alone(repo, top):
    probes = [*NAMES, b"a b1.bin", b"wx.bin", b"starX.bin", b"whatX.bin", b"other/w\\x.bin", b"a", b"b", b"backtwo"]
    probes += [b"x/" + name for name in NAMES]
    for name in NAMES:
        (top / ".gitattributes").write_bytes(attributes.ensure(b"", [attributes.literal(name)]))
        assert [path for path, ours in attributes.check(repo, probes).items() if ours] == [name]


def test_patterns_with_blanks(repo, top):
    (top / ".gitattributes").write_bytes(attributes.ensure(b"", [b"my images/*.png", b"folder/", b"#x*"]))
    found = attributes.check(repo, [b"my images/a.png", b"folder/deep/f", b"folder", b"#xy", b"images/a.png"])
    assert list(found.values()) == [True, True, False, True, False]


def test_macros_and_nested_files(repo, top):
    (top / "sub").mkdir()
    (top / ".gitattributes").write_text("[attr]ds filter=datasets -text\n")
    (top / "sub" / ".gitattributes").write_text("*.bin ds\nkeep.bin !filter\n")
    paths = [b"sub/a.bin", b"sub/keep.bin", b"a.bin"]
    assert attributes.check(repo, paths) == {b"sub/a.bin": True, b"sub/keep.bin": False, b"a.bin": False}


def test_every_source(repo, top, git, tmp_path):
    (top / "sub").mkdir()
    (top / "sub" / ".gitattributes").write_text("*.one filter=datasets\n")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    (top / "sub" / ".gitattributes").write_text("*.two filter=datasets\n")
    git("add", ".")
    (top / "sub" / ".gitattributes").write_text("*.three filter=datasets\n")
    paths = [b"sub/f.one", b"sub/f.two", b"sub/f.three"]

    def ours(where: Repo, source: str | None) -> list[bytes]:
        return [path for path, found in attributes.check(where, paths, source).items() if found]

    assert ours(repo, "HEAD") == [b"sub/f.one"]
    assert ours(repo, ":") == [b"sub/f.two"]
    assert ours(repo, None) == [b"sub/f.three"]
    (top / "sub" / ".gitattributes").unlink()
    assert ours(repo, "HEAD") == [b"sub/f.one"]
    git("clone", "-q", "--bare", str(top), "b.git", cwd=tmp_path)
    assert ours(Repo.discover(tmp_path / "b.git"), "HEAD") == [b"sub/f.one"]


def test_no_paths_no_process(repo, monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert attributes.check(repo, []) == {}

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gds_lfs.errors import GitError, NotARepositoryError
from gds_lfs.git.paths import quote
from gds_lfs.git.repo import Repo

AWKWARD = [
    b" lead.bin",
    b"-dash.bin",
    b"a b.bin",
    b"tab\t.bin",
    b"new\nline.bin",
    b'q"uote.bin',
    b"per%cent%f.bin",
    b"back\\slash.bin",
    b"[1].bin",
    "ünï.bin".encode(),
    b"\xff\xfe.bin",
    b":colon.bin",
    b"dir x/*.bin",
]


def write(top: Path, path: bytes, content: bytes = b"x") -> None:
    place = Path(os.fsdecode(os.path.join(os.fsencode(top), path)))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def test_discover_from_a_subfolder(top, git):
    (top / "a" / "b").mkdir(parents=True)
    repo = Repo.discover(top / "a" / "b")
    assert repo.top == top
    assert repo.git_dir == repo.common_dir == top / ".git"
    assert repo.index_path == top / ".git" / "index"
    assert repo.prefix == b"a/b/"
    assert repo.object_format == "sha1"
    assert repo.relative("../c") == b"a/c"
    assert repo.relative(".") == b"a/b"
    assert repo.relative("../..") == b""


def test_discover_a_folder_whose_name_has_a_newline(tmp_path, git):
    git("init", "-q", "x\ny", cwd=tmp_path)
    repo = Repo.discover(tmp_path / "x\ny")
    assert (repo.top, repo.prefix) == (tmp_path / "x\ny", b"")


def test_discover_outside_of_any_repository(tmp_path):
    with pytest.raises(NotARepositoryError, match="not a git repository"):
        Repo.discover(tmp_path)
    with pytest.raises(NotARepositoryError, match="not there"):
        Repo.discover(tmp_path / "absent")


def test_linked_worktree_shares_the_common_dir(top, git, tmp_path):
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("worktree", "add", "-q", "../w")
    repo = Repo.discover(tmp_path / "w")
    assert repo.top == tmp_path / "w"
    assert repo.common_dir == top / ".git"
    assert repo.git_dir == top / ".git" / "worktrees" / "w"
    assert repo.index_path == repo.git_dir / "index"


def test_submodule(top, git, tmp_path):
    git("commit", "-q", "--allow-empty", "-m", "x")
    git("init", "-q", "super", cwd=tmp_path)
    git("submodule", "add", "-q", str(top), "sub", cwd=tmp_path / "super")
    repo = Repo.discover(tmp_path / "super" / "sub")
    assert repo.top == tmp_path / "super" / "sub"
    assert repo.common_dir == tmp_path / "super" / ".git" / "modules" / "sub"


def test_bare_repository(top, git, tmp_path):
    write(top, b"f")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    git("clone", "-q", "--bare", str(top), "b.git", cwd=tmp_path)
    repo = Repo.discover(tmp_path / "b.git")
    assert repo.top is None
    assert [entry.path for entry in repo.tree("HEAD")] == [b"f"]
    with pytest.raises(NotARepositoryError, match="no work tree"):
        repo.work_tree  # noqa: B018 - the access is what raises


def test_relative_variables_are_right_from_every_folder(top, git, tmp_path, monkeypatch):
    (tmp_path / "foo").mkdir()
    (tmp_path / "foo" / "f").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", "t/.git")
    monkeypatch.setenv("GIT_WORK_TREE", "foo")
    repo = Repo.discover()
    assert repo.top == tmp_path / "foo"
    repo.run("add", "f")
    assert [entry.path for entry in repo.staged()] == [b"f"]


def test_index_variable(top, git, monkeypatch):
    (top / "sub").mkdir()
    write(top, b"f")
    monkeypatch.chdir(top / "sub")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other")
    repo = Repo.discover()
    assert repo.index_path == top / ".git" / "other"
    repo.run("add", "f")
    assert [entry.path for entry in repo.staged()] == [b"f"]
    assert not (top / ".git" / "index").exists()


def test_a_path_reached_through_a_link(top, tmp_path):
    (tmp_path / "s").symlink_to("t")
    repo = Repo.discover(tmp_path / "s")
    assert repo.top == top
    assert repo.relative(str(tmp_path / "s" / "a" / "f")) == b"a/f"
    assert repo.relative(str(top / "f")) == b"f"
    for outside in ("..", str(tmp_path / "other"), "a/../../x"):
        with pytest.raises(GitError, match="outside the repository"):
            repo.relative(outside)


def test_awkward_names_in_index_and_tree(top, git):
    for path in AWKWARD:
        write(top, path)
    git("add", ".")
    repo = Repo.discover(top)
    assert sorted(entry.path for entry in repo.staged()) == sorted(AWKWARD)
    for path in AWKWARD:
        assert [entry.path for entry in repo.staged([path])] == [path]
        assert git("ls-files", "--", b":(literal)" + path).strip("\n") == quote(path)
    assert [entry.path for entry in repo.staged([b"dir x"])] == [b"dir x/*.bin"]
    git("commit", "-q", "-m", "x")
    assert sorted(entry.path for entry in repo.tree("HEAD")) == sorted(AWKWARD)
    assert [entry.path for entry in repo.tree("HEAD", [b"dir x", b"-dash.bin"])] == [b"-dash.bin", b"dir x/*.bin"]
    assert list(repo.changed_staged("HEAD")) == []
    git("rm", "-q", "--cached", "--", "-dash.bin")
    assert [(change.status, change.path) for change in repo.changed_staged()] == [("D", b"-dash.bin")]


def test_many_paths_are_filtered_here(top, git):
    for number in range(120):
        write(top, b"a/%d" % number)
        write(top, b"b/%d/f" % number)
    git("add", ".")
    repo = Repo.discover(top)
    wanted = [b"a/%d" % number for number in range(60)] + [b"b/7"]
    assert {entry.path for entry in repo.staged(wanted)} == {*wanted[:-1], b"b/7/f"}
    assert len(list(repo.staged([b""]))) == 240
    assert list(repo.staged([])) == []
    git("commit", "-q", "-m", "x")
    assert {entry.path for entry in repo.tree("HEAD", wanted)} == {*wanted[:-1], b"b/7/f"}


def test_changes_before_the_first_commit(top, git):
    write(top, b"f")
    git("add", ".")
    repo = Repo.discover(top)
    assert repo.head() is None
    [change] = repo.changed_staged()
    assert (change.status, change.old_mode, change.new_mode, change.path) == ("A", 0, 0o100644, b"f")


def test_conflict_stages(top, git):
    blob = git("hash-object", "-w", "--stdin", data=b"x").strip()
    lines = "".join(f"100644 {blob} {stage}\tf\n" for stage in (1, 2, 3))
    git("update-index", "--index-info", data=lines.encode())
    assert [entry.stage for entry in Repo.discover(top).staged()] == [1, 2, 3]


def test_git_errors_name_the_command(top):
    with pytest.raises(GitError, match=r"^git cat-file: Not a valid object name nope$"):
        Repo.discover(top).run("cat-file", "blob", "nope")


def test_sha256_repository(tmp_path, git):
    git("init", "-q", "--object-format=sha256", "s", cwd=tmp_path)
    write(tmp_path / "s", b"f")
    git("add", ".", cwd=tmp_path / "s")
    repo = Repo.discover(tmp_path / "s")
    assert repo.object_format == "sha256"
    [change] = repo.changed_staged()
    assert len(change.new_sha) == 64

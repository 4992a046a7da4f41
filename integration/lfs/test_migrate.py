"""git-lfs's pointers made ours and back: the next commit, and history."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from machines import blob, digests, is_clean, pointer

from .conftest import LfsMachine

CONTENTS = {f"d/{number}.bin": random.Random(number).randbytes(3000) for number in range(20)}
LARGE = {"large.bin": random.Random(99).randbytes(900_000)}


@pytest.fixture
def full(lfs: LfsMachine) -> LfsMachine:
    """A repository with LFS files in two commits, pushed through the agent."""
    lfs.gd(lfs.root, "install")
    (lfs.work / "plain.txt").write_text("plain\n")
    lfs.commit(CONTENTS)
    lfs.commit(LARGE | {"d/0.bin": b"another version"})
    lfs.git(lfs.work, "push", "-q", "origin", "main")
    return lfs


def test_import_changes_pointers_and_attributes_alone(full: LfsMachine) -> None:
    before = digests(full.work)
    stored = digests(full.data)
    full.gd(full.work, "migrate", "import", "--from", "lfs")
    (attributes,) = (full.work / ".gitattributes").read_text().splitlines()
    assert attributes == "*.bin filter=datasets diff=datasets merge=datasets -text"
    assert full.git(full.work, "diff", "--name-only").stdout == "", "the files are known to be unchanged"
    full.git(full.work, "commit", "-qm", "ours")
    assert blob(full, full.work, "HEAD:large.bin") == pointer(LARGE["large.bin"])
    assert blob(full, full.work, "HEAD:plain.txt") == "plain\n"
    assert is_clean(full, full.work)
    after = digests(full.work)
    assert {**before, ".gitattributes": ""} == {**after, ".gitattributes": ""}
    full.git(full.work, "push", "-q", "origin", "main")
    assert digests(full.data) == stored, "nothing was sent again"
    clone = full.root / "ours"
    full.git(full.root, "clone", "-q", "-c", f"datasets.remote={full.data}", full.origin, "ours")
    assert (clone / "large.bin").read_bytes() == LARGE["large.bin"]
    assert full.gd(full.work, "fsck").returncode == 0


def test_export_takes_it_back_and_git_lfs_is_content(full: LfsMachine) -> None:
    tree = full.git(full.work, "rev-parse", "HEAD^{tree}").stdout
    full.gd(full.work, "migrate", "import")
    full.git(full.work, "commit", "-qm", "ours")
    for path in (full.work / ".git/lfs/objects").rglob("*"):
        if path.is_file():
            path.unlink()
    full.gd(full.work, "migrate", "export", "--to", "lfs")
    full.git(full.work, "commit", "-qm", "theirs again")
    assert full.git(full.work, "rev-parse", "HEAD^{tree}").stdout == tree
    assert is_clean(full, full.work)
    full.lfs(full.work, "fsck", "HEAD")


def test_what_was_changed_stays_changed_and_what_is_a_pointer_becomes_one(full: LfsMachine) -> None:
    clone = full.clone()
    full.lfs(clone, "pull", "--include", "d/1*.bin")
    (clone / "d/1.bin").write_bytes(b"edited")
    (clone / "d/11.bin").unlink()
    full.gd(clone, "migrate", "import")
    assert (clone / "d/2.bin").read_text() == pointer(CONTENTS["d/2.bin"])
    assert (clone / "d/10.bin").read_bytes() == CONTENTS["d/10.bin"]
    changed = full.git(clone, "diff", "--name-status").stdout.splitlines()
    assert changed == ["M\td/1.bin", "D\td/11.bin"]
    full.git(clone, "commit", "-qm", "ours")
    full.gd(clone, "pull")
    assert (clone / "d/2.bin").read_bytes() == CONTENTS["d/2.bin"]


def test_a_content_that_is_nowhere_stops_it_before_anything_changes(full: LfsMachine) -> None:
    full.git(full.work, "config", "--unset", "datasets.remote")
    for path in (full.work / ".git/lfs/objects").rglob("*"):
        if path.is_file() and path.stat().st_size == 900_000:
            path.unlink()
    refused = full.gd(full.work, "migrate", "import", check=False)
    assert refused.returncode == 6
    assert "large.bin" in refused.stderr
    assert "git lfs fetch" in refused.stderr
    assert is_clean(full, full.work)


def test_text_that_merely_looks_like_a_pointer_stays(full: LfsMachine) -> None:
    text = blob(full, full.work, "HEAD:large.bin")
    (full.work / "example.md").write_text(text)
    full.git(full.work, "add", ".")
    full.gd(full.work, "migrate", "import")
    assert blob(full, full.work, ":example.md") == text


def test_everything(full: LfsMachine) -> None:
    work = full.work
    full.git(work, "tag", "-a", "v1", "-m", "one", "HEAD~1")
    full.git(work, "branch", "side", "HEAD~1")
    full.commit({"d/0.bin": b"a third", "sub/.gitattributes": b"*.dat filter=lfs diff=lfs merge=lfs -text lockable\n"})
    subjects = full.git(work, "log", "--format=%s %an %at", "main", "side").stdout
    before = digests(work)
    full.gd(work, "migrate", "import", "--everything")
    assert is_clean(full, work)
    assert full.git(work, "log", "--format=%s %an %at", "main", "side").stdout == subjects
    assert blob(full, work, "v1:d/0.bin") == pointer(CONTENTS["d/0.bin"])
    assert blob(full, work, "side:d/0.bin") == pointer(CONTENTS["d/0.bin"])
    assert blob(full, work, "HEAD~1:d/0.bin") == pointer(b"another version")
    assert "filter=datasets" in blob(full, work, "HEAD~2:.gitattributes")
    assert "filter=datasets" in blob(full, work, "HEAD:sub/.gitattributes")
    assert "lockable" in blob(full, work, "HEAD:sub/.gitattributes")
    assert full.git(work, "cat-file", "-t", "v1").stdout == "tag\n"
    assert full.git(work, "for-each-ref", "--format=%(refname)", "refs/original/").stdout.split() == [
        "refs/original/refs/heads/main",
        "refs/original/refs/heads/side",
        "refs/original/refs/tags/v1",
    ]
    again = full.gd(work, "migrate", "export", "--everything", check=False)
    assert again.returncode == 4
    assert "refs/original/" in again.stderr
    refs = full.git(work, "for-each-ref", "--format=delete %(refname)", "refs/original/").stdout
    full.git(work, "update-ref", "--stdin", input=refs)
    full.gd(work, "migrate", "export", "--everything")
    assert {**digests(work), ".gitattributes": ""} == {**before, ".gitattributes": ""}
    assert is_clean(full, work)
    full.lfs(work, "fsck")


def test_everything_wants_a_clean_work_tree_on_a_branch(full: LfsMachine) -> None:
    (full.work / "large.bin").write_bytes(b"edited")
    assert full.gd(full.work, "migrate", "import", "--everything", check=False).returncode == 4
    full.git(full.work, "checkout", "-q", "--", "large.bin")
    full.git(full.work, "checkout", "-q", "--detach")
    refused = full.gd(full.work, "migrate", "import", "--everything", check=False)
    assert refused.returncode == 4
    assert "on no branch" in refused.stderr


def test_nothing_to_do(lfs: LfsMachine, tmp_path: Path) -> None:
    empty = lfs.repo("empty")
    done = lfs.gd(empty, "migrate", "import")
    assert "nothing here belongs to filter=lfs" in done.stderr
    assert os.listdir(empty) == [".git"]

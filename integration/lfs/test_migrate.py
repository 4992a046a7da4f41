"""git-lfs's pointers made ours and back: the next commit, and history."""

from __future__ import annotations

import os
import random
import re
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
    told = full.gd(full.work, "migrate", "import", "--from", "lfs")
    assert f"known to this clone alone; to tell all: `git datasets link {full.data}`" in told.stderr
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


def test_a_remote_that_cannot_be_asked_says_why(full: LfsMachine) -> None:
    clone = full.clone()
    full.git(clone, "config", "--unset", "datasets.remote")
    settings = b"[datasets]\n\tremote = s3://bucket/data\n\tendpoint = https://s3.example.org\n"
    full.commit({".datasetsconfig": settings}, repo=clone)
    for options in [], ["--everything"]:
        refused = full.gd(clone, "migrate", "import", *options, check=False)
        assert refused.returncode == 8
        assert "git datasets link s3://bucket/data --endpoint https://s3.example.org" in refused.stderr
        assert "d/1.bin" in refused.stderr
        assert "git lfs fetch --all" in refused.stderr
        assert is_clean(full, clone)
    full.git(clone, "config", "datasets.remote", full.root / "not mounted")
    refused = full.gd(clone, "migrate", "import", check=False)
    assert refused.returncode == 6
    assert "is the drive mounted" in refused.stderr
    assert "git lfs fetch --all" in refused.stderr


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
    _forget_old_branches(full, work)
    full.gd(work, "migrate", "export", "--everything")
    assert {**digests(work), ".gitattributes": ""} == {**before, ".gitattributes": ""}
    assert is_clean(full, work)
    full.lfs(work, "fsck")


def test_everything_sends_no_content_again(full: LfsMachine) -> None:
    stored = digests(full.data)
    clone = full.clone()
    full.gd(clone, "install")
    full.gd(clone, "migrate", "import", "--everything")
    full.git(clone, "push", "-q", "--force", "origin", "main")
    full.gd(full.work, "migrate", "import", "--everything")
    full.gd(full.work, "push", "--all")
    full.git(full.work, "push", "-q", "--force", "origin", "main")
    assert digests(full.data) == stored, "neither from a clone without contents nor from one that has them"
    full.git(full.root, "clone", "-q", "-c", f"datasets.remote={full.data}", full.origin, "ours")
    assert digests(full.root / "ours") == digests(full.work)
    full.commit({"new.bin": b"new"})
    full.git(full.work, "push", "-q", "origin", "main")
    assert digests(full.data) != stored, "what is new does arrive"


def test_everything_leaves_text_that_merely_looks_like_a_pointer(full: LfsMachine) -> None:
    work = full.work
    present = blob(full, work, "HEAD:large.bin")
    absent = re.sub("sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", present)
    copied = (work / ".gitattributes").read_text()
    texts = {"example.md": present.encode(), "absent.md": absent.encode(), "sample.txt": copied.encode()}
    full.commit(texts)
    full.gd(work, "migrate", "import", "--everything")
    assert is_clean(full, work)
    for name, text in texts.items():
        assert blob(full, work, f"HEAD:{name}") == text.decode()
    assert "filter=datasets" in blob(full, work, "HEAD:.gitattributes")
    assert blob(full, work, "HEAD:large.bin") == pointer(LARGE["large.bin"])
    ours = {"ours.md": pointer(LARGE["large.bin"]).encode(), "ours-absent.md": pointer(b"nowhere").encode()}
    full.commit(ours)
    _forget_old_branches(full, work)
    full.gd(work, "migrate", "export", "--everything")
    assert is_clean(full, work)
    for name, text in ours.items():
        assert blob(full, work, f"HEAD:{name}") == text.decode()
    assert blob(full, work, "HEAD:large.bin") == present


def test_everything_heeds_the_attributes_of_each_commit(full: LfsMachine) -> None:
    work = full.work
    theirs = blob(full, work, "HEAD:large.bin")
    tracked = (work / ".gitattributes").read_bytes()
    folder = b"*.dat filter=lfs diff=lfs merge=lfs -text\n"
    names = ["d/late.dat", 'd/a "quoted" ü.dat', "d/run.dat", "late.dat"]
    for name in ["d/run.dat", "d/link.dat"]:
        (work / name).symlink_to("late.dat")
    full.commit({name: theirs.encode() for name in names if name != "d/run.dat"})
    (work / "d/run.dat").unlink()
    (work / "d/run.dat").write_text(theirs)
    (work / "d/run.dat").chmod(0o755)
    full.commit({}, "before")
    for message, text in {"tracked": folder, "no longer": b"", "again": folder}.items():
        full.commit({"d/.gitattributes": text}, message)
    full.git(work, "checkout", "-qb", "side", "HEAD~3")
    full.commit({".gitattributes": tracked + folder}, "all of them")
    full.git(work, "merge", "-q", "-m", "merged", "main")
    full.git(work, "checkout", "-q", "main")
    full.gd(work, "migrate", "import", "--everything")
    ours = pointer(LARGE["large.bin"])
    for name in names:
        below = name.startswith("d/")
        found = [blob(full, work, f"main~{number}:{name}") for number in range(4)]
        assert found == ([ours, theirs, ours, theirs] if below else [theirs] * 4)
        assert blob(full, work, f"side:{name}") == ours
        assert blob(full, work, f"side~1:{name}") == ours
    assert full.git(work, "ls-tree", "main", "d/run.dat").stdout.startswith("100755")
    assert blob(full, work, "main:d/link.dat") == "late.dat"
    for branch in "side", "main":
        full.git(work, "checkout", "-q", branch)
        assert is_clean(full, work)


def test_everything_refuses_a_branch_of_another_work_tree(full: LfsMachine) -> None:
    work, side = full.work, full.root / "a side"
    full.git(work, "branch", "side")
    full.git(work, "worktree", "add", "-q", side, "side")
    before = full.git(work, "for-each-ref").stdout
    refused = full.gd(work, "migrate", "import", "--everything", check=False)
    assert refused.returncode == 4
    assert f"'side' at '{side}'" in refused.stderr
    assert "git switch --detach" in refused.stderr
    there = full.gd(side, "migrate", "import", "--everything", check=False)
    assert f"'main' at '{work}'" in there.stderr
    assert full.git(work, "for-each-ref").stdout == before
    assert is_clean(full, work)
    assert is_clean(full, side)
    full.git(side, "switch", "-q", "--detach")
    full.gd(work, "migrate", "import", "--everything")
    assert is_clean(full, work)
    assert is_clean(full, side)


def test_everything_in_a_submodule_is_not_another_work_tree(full: LfsMachine) -> None:
    outer = full.repo("outer")
    full.git(outer, "submodule", "add", "-q", full.origin, "sub", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    sub = outer / "sub"
    full.git(sub, "config", "datasets.remote", full.data)
    full.gd(sub, "migrate", "import", "--everything")
    assert blob(full, sub, "HEAD:large.bin") == pointer(LARGE["large.bin"])


def test_everything_that_fails_leaves_the_branches(full: LfsMachine) -> None:
    before = full.git(full.work, "for-each-ref").stdout
    once = full.root / "refused"
    hook = full.work / ".git/hooks/reference-transaction"
    hook.write_text(f'#!/bin/sh\ngrep -q " refs/heads/" && [ ! -e "{once}" ] || exit 0\n: >"{once}"\nexit 1\n')
    hook.chmod(0o755)
    failed = full.gd(full.work, "migrate", "import", "--everything", check=False)
    assert once.exists()
    assert failed.returncode == 3
    assert "git fast-import: " in failed.stderr
    assert "the branches are as they were" in failed.stderr
    assert full.git(full.work, "for-each-ref").stdout == before


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


def _forget_old_branches(machine: LfsMachine, repo: Path) -> None:
    refs = machine.git(repo, "for-each-ref", "--format=delete %(refname)", "refs/original/").stdout
    machine.git(repo, "update-ref", "--stdin", input=refs)

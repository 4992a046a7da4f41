"""Data follows when it is to go to another place, and a place that is gone is not begun anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from machines import Machine, digests

LINKS = {
    "for everyone": ("link", "{moved}"),
    "for this clone": ("link", "{moved}", "--local"),
    "for one git remote": ("link", "{moved}", "--remote", "origin"),
}


def commit(machine: Machine, work: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (work / name).write_bytes(content)
    machine.git(work, "add", "-A")
    machine.git(work, "commit", "-qm", "files")


@pytest.fixture
def published(ready: Machine) -> Path:
    """An origin that keeps its data itself, and what was pushed there: two versions."""
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", ready.bare())
    ready.gd(work, "track", "*.bin")
    commit(ready, work, {"a.bin": b"a" * 3000, "old.bin": b"old" * 1000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    return work


@pytest.mark.parametrize("way", LINKS.values(), ids=LINKS)
def test_a_fresh_clone_that_names_another_place_fills_it(ready: Machine, published: Path, way: tuple[str, ...]) -> None:
    moved = ready.root / "moved"
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    clone = ready.root / "clone"
    ready.gd(clone, *(word.format(moved=moved) for word in way))
    ready.git(clone, "commit", "-q", "--allow-empty", "-am", "another place")
    told = ready.git(clone, "push")
    assert "sent 2 files" in told.stderr
    shutil.rmtree(ready.root / "origin.git/datasets-remote")
    ready.git(ready.root, "clone", "-q", "origin.git", "other", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    ready.git(ready.root / "other", "config", "datasets.remote", moved)
    ready.gd(ready.root / "other", "pull")
    assert digests(ready.root / "other") == digests(clone)


def test_a_place_that_index_py_names_is_another_place_too(ready: Machine, published: Path) -> None:
    moved = ready.root / "moved"
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    clone = ready.root / "clone"
    (clone / "index.py").write_text(
        f"from gds_lfs import dataset\n\n\n@dataset(remote={str(moved)!r})\nclass People:\n    name: str\n"
    )
    ready.gd(clone, "track", "index.py")
    ready.git(clone, "add", "-A")
    ready.git(clone, "commit", "-qm", "a dataset")
    ready.git(clone, "push", "-q")
    shutil.rmtree(ready.root / "origin.git/datasets-remote")
    ready.git(ready.root, "clone", "-q", "origin.git", "other")
    assert (ready.root / "other/a.bin").read_bytes() == b"a" * 3000


def test_what_only_the_old_place_has_stops_the_push_with_the_way_out(ready: Machine, published: Path) -> None:
    (published / "old.bin").unlink()
    commit(ready, published, {"a.bin": b"A" * 3000})  # no pack of the first version is needed for this one
    ready.git(published, "push", "-q")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    clone = ready.root / "clone"
    ready.gd(clone, "link", ready.root / "moved")
    ready.git(clone, "commit", "-qm", "another place")
    refused = ready.git(clone, "push", check=False)
    assert refused.returncode != 0
    old = ready.root / "origin.git/datasets-remote"
    assert "a.bin" in refused.stderr
    assert f"git datasets link --local {old}" in refused.stderr
    ready.gd(clone, "link", "--local", old)
    ready.gd(clone, "fetch", "--all")
    ready.git(clone, "config", "--unset", "datasets.remote")
    assert "sent 3 files" in ready.git(clone, "push").stderr


def test_who_cannot_reach_the_data_can_push_code(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    (ready.root / "data").rename(ready.root / "out-of-reach")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    clone = ready.root / "clone"
    commit(ready, clone, {"code.py": b"print()\n"})
    ready.git(clone, "push", "-q")


def test_a_clone_that_has_only_fetched_fills_no_empty_mount_point(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    clone = ready.root / "clone"
    data = ready.root / "data"
    data.rename(ready.root / "unmounted")
    for there in (False, True):
        if there:
            data.mkdir()
        commit(ready, clone, {"b.bin": b"b" * (3000 + there)})
        refused = ready.git(clone, "push", check=False)
        assert refused.returncode != 0
        assert "is the drive mounted" in refused.stderr
    assert not list(data.iterdir())


def test_a_clone_of_a_repository_that_has_pushed_nothing_has_its_data(ready: Machine) -> None:
    work = ready.repo()
    ready.gd(work, "track", "*.bin")
    commit(ready, work, {"a.bin": b"a" * 3000, "b.bin": b"b" * 3_000_000})
    told = ready.git(ready.root, "clone", "work", "clone")
    assert "warning" not in told.stderr
    clone = ready.root / "clone"
    assert digests(clone) == digests(work)
    commit(ready, work, {"a.bin": b"A" * 3000})
    ready.git(clone, "pull", "-q")
    assert digests(clone) == digests(work)
    commit(ready, clone, {"c.bin": b"c" * 3000})
    ready.git(clone, "push", "-q", "origin", "HEAD:refs/heads/theirs")
    ready.git(work, "merge", "-q", "theirs")
    assert digests(clone) == digests(work)
    ready.git(ready.root, "clone", "-q", "work", "third")
    assert digests(ready.root / "third") == digests(work)

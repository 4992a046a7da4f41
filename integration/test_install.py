"""install and uninstall: raw data must not go into git itself where git does not know the filter."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import Machine, blob, pointer

OLD, NEW = b"a" * 3000, b"b" * 3000


def forget_the_filter(machine: Machine) -> None:
    machine.gd(machine.root, "uninstall")


@pytest.fixture
def clone(ready: Machine, work: Path) -> Path:
    """A clone that somebody made who has never run `git datasets install`."""
    (work / "a.bin").write_bytes(OLD)
    (work / "plain.txt").write_text("plain")
    ready.git(work, "add", "-A")
    ready.git(work, "commit", "-qm", "a")
    ready.git(work, "push", "-q", "origin", "main")
    forget_the_filter(ready)
    ready.git(ready.root, "clone", "-q", "origin.git", "clone")
    return ready.root / "clone"


def test_a_pull_makes_up_for_an_install_that_was_forgotten(ready: Machine, clone: Path) -> None:
    said = ready.gd(clone, "pull").stderr
    assert "installed for this repository" in said
    assert "`git datasets install`" in said
    assert (clone / "a.bin").read_bytes() == OLD
    (clone / "a.bin").write_bytes(NEW)
    ready.git(clone, "commit", "-qam", "b")
    assert blob(ready, clone, "HEAD:a.bin") == pointer(NEW)
    assert "installed" not in ready.gd(clone, "pull").stderr


def test_an_install_tells_of_pointers_where_there_are_any(ready: Machine, clone: Path) -> None:
    for _ in range(2):
        assert (
            "1 file is still a pointer and gets its data with: git datasets pull" in ready.gd(clone, "install").stderr
        )
    ready.gd(clone, "pull")
    assert (clone / "a.bin").read_bytes() == OLD
    said = ready.gd(clone, "install").stderr
    assert "already installed" in said
    assert "pointer" not in said


def test_a_pull_without_any_data_sets_nothing_up(machine: Machine) -> None:
    repo = machine.repo("fresh")
    assert "installed" not in machine.gd(repo, "pull").stderr
    assert machine.git(repo, "config", "--get-regexp", "filter", check=False).stdout == ""


@pytest.mark.parametrize("how", ["all", "added"])
def test_a_commit_of_raw_data_is_refused_while_the_filter_is_unknown(ready: Machine, work: Path, how: str) -> None:
    (work / "sub").mkdir()
    (work / "a.bin").write_bytes(OLD)
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "a")
    forget_the_filter(ready)
    (work / "a.bin").write_bytes(NEW)
    (work / "sub/large.bin").write_bytes(NEW * 10)
    if how == "added":
        ready.git(work, "add", ".")
    refused = ready.git(work, "commit", *(["-am", "b"] if how == "all" else ["-m", "b"]), check=False)
    assert refused.returncode != 0
    assert "a.bin" in refused.stderr
    assert ("sub/large.bin" in refused.stderr) == (how == "added")
    assert "`git datasets install`, then `git add --renormalize .`" in refused.stderr
    assert ready.git(work, "log", "--format=%s", "-1").stdout == "a\n"

    ready.gd(work, "install")
    ready.git(work, "add", "--renormalize", ".")
    ready.git(work, "commit", "-qm", "b")
    assert blob(ready, work, "HEAD:a.bin") == pointer(NEW)
    if how == "added":
        assert blob(ready, work, "HEAD:sub/large.bin") == pointer(NEW * 10)


def test_what_is_no_raw_data_is_committed_without_the_filter(ready: Machine, work: Path) -> None:
    (work / "a.bin").write_bytes(OLD)
    ready.git(work, "add", ".")
    ready.git(work, "commit", "-qm", "a")
    forget_the_filter(ready)
    (work / "plain.txt").write_text("plain " * 2000)
    (work / "empty.bin").touch()
    (work / "pointer.bin").write_text(pointer(OLD))
    (work / "link.bin").symlink_to("plain.txt")
    ready.git(work, "add", "plain.txt", "empty.bin", "pointer.bin", "link.bin")
    ready.git(work, "mv", "a.bin", "b.bin")
    ready.git(work, "commit", "-qm", "b")
    ready.git(work, "rm", "-qf", "b.bin")
    ready.git(work, "commit", "-qm", "c")


def test_a_filter_on_the_command_line_is_one(ready: Machine, work: Path) -> None:
    drivers = ready.git(work, "config", "--get-regexp", r"^filter\.datasets\.").stdout.splitlines()
    forget_the_filter(ready)
    options = [word for line in drivers for word in ("-c", line.replace(" ", "=", 1))]
    (work / "a.bin").write_bytes(OLD)
    ready.git(work, *options, "add", "a.bin")
    ready.git(work, *options, "commit", "-qm", "a")
    assert blob(ready, work, "HEAD:a.bin") == pointer(OLD)


def test_uninstall_says_what_becomes_of_hooks_and_data(ready: Machine, work: Path) -> None:
    said = ready.gd(ready.root, "uninstall").stderr
    assert "hooks in repositories stay, and let no data into git itself" in said
    said = ready.gd(work, "uninstall").stderr
    assert "removed hook pre-commit" in said
    assert "goes into git itself from now on" in said
    assert "nothing was installed" in ready.gd(work, "uninstall").stderr

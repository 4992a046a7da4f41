"""`git datasets pull`: whatever stops it, what is here is filled in, and git never calls a filled-in file modified."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from machines import Machine, blob, digests, is_clean, pointer

SKIP = {"GIT_DATASETS_SKIP_SMUDGE": "1"}


def publish(machine: Machine, work: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    machine.git(work, "add", "-A")
    machine.git(work, "commit", "-qm", "files")
    machine.git(work, "push", "-q", "-u", "origin", "main")


def clone(machine: Machine, name: str = "elsewhere", *, skip: bool = True) -> Path:
    machine.git(machine.root, "clone", "-q", "origin.git", name, env=SKIP if skip else {})
    return machine.root / name


@pytest.mark.parametrize("signal", ["KILL", "INT"])
def test_a_pull_that_is_cut_short_leaves_a_clean_status_and_no_files_of_its_own(
    ready: Machine, work: Path, signal: str
) -> None:
    publish(ready, work, {f"{i}.bin": os.urandom(6_000_000) for i in range(12)})
    elsewhere = clone(ready)
    ready.gd(elsewhere, "fetch")
    for seconds in ("0.3", "0.4", "0.5"):
        ready.run("timeout", "-s", signal, seconds, "git", "datasets", "pull", cwd=elsewhere, check=False)
        (elsewhere / ".git/index.lock").unlink(missing_ok=True)
        assert is_clean(ready, elsewhere)
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)


def test_what_is_here_is_filled_in_while_the_remote_is_gone(ready: Machine, work: Path) -> None:
    absent = os.urandom(1_500_000)  # a smaller one may travel in one record with an end of the other
    publish(ready, work, {"a.bin": absent, "b.bin": os.urandom(3_000_000)})
    elsewhere = clone(ready)
    ready.gd(elsewhere, "fetch", "--include", "b.bin")
    (ready.root / "data").rename(ready.root / "gone")
    told = ready.gd(elsewhere, "pull", check=False)
    assert told.returncode == 8
    assert "is not there" in told.stderr
    assert (elsewhere / "b.bin").read_bytes() == (work / "b.bin").read_bytes()
    assert (elsewhere / "a.bin").read_text() == pointer(absent)
    assert is_clean(ready, elsewhere)


def test_damage_in_the_store_is_fetched_anew_by_the_same_pull(ready: Machine, work: Path) -> None:
    publish(ready, work, {"a.bin": os.urandom(400_000), "b.bin": b"b"})
    elsewhere = clone(ready)
    ready.gd(elsewhere, "fetch")
    (pack,) = (elsewhere / ".git/datasets").rglob("*.pack")
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(damaged)
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    assert ready.gd(elsewhere, "fsck").returncode == 0


def test_files_that_a_merge_has_yet_to_settle_are_left_alone_and_named(ready: Machine, work: Path) -> None:
    publish(ready, work, {"f.bin": b"base"})
    ready.git(work, "checkout", "-qb", "side")
    (work / "f.bin").write_bytes(b"side")
    ready.git(work, "commit", "-qam", "side")
    ready.git(work, "checkout", "-q", "main")
    (work / "f.bin").write_bytes(b"main")
    ready.git(work, "commit", "-qam", "main")
    assert ready.git(work, "merge", "side", check=False).returncode == 1
    told = ready.gd(work, "pull")
    assert "f.bin" in told.stderr
    assert (work / "f.bin").read_bytes() == b"main"
    ready.git(work, "checkout", "--theirs", "f.bin")
    ready.git(work, "add", "f.bin")
    ready.git(work, "commit", "-qm", "settled")
    assert blob(ready, work, "HEAD:f.bin") == pointer(b"side")


def test_one_file_checked_out_without_attributes_or_config_is_pulled(ready: Machine, work: Path) -> None:
    publish(ready, work, {"a.bin": b"a" * 3000, "b.bin": b"b" * 3000})
    alone = ready.repo("alone")
    ready.git(alone, "remote", "add", "origin", ready.root / "origin.git")
    ready.git(alone, "fetch", "-q")
    ready.git(alone, "update-ref", "HEAD", "origin/main")
    ready.git(alone, "checkout", "HEAD", "--", "a.bin")
    ready.gd(alone, "pull", "--include", "a.bin")
    assert (alone / "a.bin").read_bytes() == b"a" * 3000
    assert not (alone / "b.bin").exists()


def test_the_lock_that_an_editor_holds_for_a_moment_is_waited_for(ready: Machine, work: Path) -> None:
    publish(ready, work, {"a.bin": b"a" * 3000})
    elsewhere = clone(ready)
    ready.run("sh", "-c", "touch .git/index.lock; (sleep 1; rm .git/index.lock) & git datasets pull", cwd=elsewhere)
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)
    (elsewhere / "a.bin").write_text(pointer(b"a" * 3000))
    (elsewhere / ".git/index.lock").touch()
    refused = ready.gd(elsewhere, "pull", check=False)
    assert refused.returncode == 9
    assert "index.lock" in refused.stderr
    assert (elsewhere / "a.bin").read_text() == pointer(b"a" * 3000), "nothing was written before"


def test_a_remote_that_git_does_not_know_is_refused(ready: Machine, work: Path) -> None:
    publish(ready, work, {"a.bin": b"a"})
    for verb in ("pull", "fetch", "push"):
        refused = ready.gd(work, verb, "nosuch", check=False)
        assert refused.returncode == 4
        assert "nosuch" in refused.stderr


def test_a_file_that_the_disk_takes_in_part_stays_a_pointer(ready: Machine, work: Path) -> None:
    """A write that ends at the last free byte is no error to the system: only the next one is."""
    content = bytes(range(250)) * 24  # 6,000 bytes, where 4,096 are allowed
    publish(ready, work, {"a.bin": content, "b.bin": b"b" * 3000})
    elsewhere = clone(ready)
    ready.gd(elsewhere, "fetch")
    done = ready.run("bash", "-c", "ulimit -f 4; exec git datasets pull", cwd=elsewhere, check=False)
    assert done.returncode == 1
    assert "a.bin: File too large" in done.stderr
    assert (elsewhere / "a.bin").read_text() == pointer(content)
    assert (elsewhere / "b.bin").read_bytes() == b"b" * 3000
    assert is_clean(ready, elsewhere)
    ready.gd(elsewhere, "pull")
    assert (elsewhere / "a.bin").read_bytes() == content
    assert is_clean(ready, elsewhere)


def test_what_a_killed_pull_left_beside_a_file_goes(ready: Machine, work: Path) -> None:
    publish(ready, work, {"data/a.bin": b"a" * 3000})
    elsewhere = clone(ready)
    old, recent = (elsewhere / "data" / f".gds-{digit * 16}" for digit in "ab")
    theirs = elsewhere / "data/.gds-mine"
    for file in (old, recent, theirs):
        file.write_bytes(b"half")
    for file in (old, theirs):
        os.utime(file, (1, 1))
    ready.gd(elsewhere, "pull")
    assert not old.exists()
    assert recent.exists(), "somebody may be at it"
    assert theirs.exists()

"""status, fsck and ls-files: what they call wrong, what they do not, and from where paths are seen."""

from __future__ import annotations

import os
from pathlib import Path

from machines import Machine, pointer


def commit(machine: Machine, work: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    machine.git(work, "add", "-A")
    machine.git(work, "commit", "-qm", "files")


def test_blobs_that_a_partial_clone_lacks_are_no_raw_content(ready: Machine, work: Path) -> None:
    commit(ready, work, {"in/a.bin": b"a" * 3000, "out/b.bin": b"b" * 3000, "out/c.bin": b"c"})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root / "origin.git", "config", "uploadpack.allowFilter", "true")
    url = f"file://{ready.root}/origin.git"
    ready.git(ready.root, "clone", "-q", "--filter=blob:none", "--no-checkout", url, "part")
    part = ready.root / "part"
    ready.git(part, "sparse-checkout", "set", "--cone", "in")
    ready.git(part, "checkout", "-q", "main")
    assert not (part / "out").exists()
    for verb in ("status", "fsck"):
        told = ready.gd(part, verb)
        assert "out/" not in told.stdout
    ready.gd(part, "pull")
    assert not (part / "out").exists()
    missing = ready.git(part, "rev-list", "--objects", "--all", "--missing=print").stdout
    assert missing.count("?") >= 2, "the blobs outside were not fetched"


def test_a_pointer_with_the_wrong_size_is_named(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"CCC"})
    text = pointer(b"CCC").replace("size 3", "size 999")
    sha = ready.git(work, "hash-object", "-w", "--stdin", "--no-filters", input=text).stdout.strip()
    ready.git(work, "update-index", "--add", "--cacheinfo", f"100644,{sha},b.bin")
    found = ready.gd(work, "fsck", check=False)
    assert found.returncode == 1
    assert "b.bin" in found.stdout
    assert "a.bin" not in found.stdout


def test_a_pointer_renamed_out_of_its_pattern_is_named_with_the_way_out(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "mv", "a.bin", "a.txt")
    ready.git(work, "commit", "-qm", "renamed")
    for verb in ("status", "fsck"):
        found = ready.gd(work, verb, check=False)
        assert found.returncode == 1
        assert "a.txt" in found.stdout
        assert "git datasets track" in found.stdout
    ready.gd(work, "track", "--filename", "a.txt")
    ready.git(work, "add", ".gitattributes")
    assert ready.gd(work, "fsck").returncode == 0


def test_paths_are_seen_from_the_folder_the_user_stands_in(ready: Machine, work: Path) -> None:
    commit(ready, work, {"top.bin": b"t", "sub/one.bin": b"1", "sub/deep/two.bin": b"2"})
    (work / ".git/datasets/packs").rename(work / ".git/elsewhere")
    names = {"top.bin", "sub/one.bin", "sub/deep/two.bin"}
    for folder in (work, work / "sub", work / "sub/deep"):
        seen = {os.path.relpath(work / name, folder) for name in names}
        listed = ready.gd(folder, "ls-files").stdout.splitlines()
        assert {line.split(" ", 2)[2] for line in listed} == seen
        assert set(ready.gd(folder, "ls-files", "-z").stdout.split("\0")[:-1]) == seen
        assert seen <= {line.strip() for line in ready.gd(folder, "fsck").stdout.splitlines()}


def test_fsck_reads_many_small_files_once(ready: Machine, work: Path) -> None:
    commit(ready, work, {f"{i}.bin": b"%d " % i * 20 for i in range(3000)})
    assert "checked 3,000 files: all good" in ready.gd(work, "fsck").stdout


def test_many_pointers_are_counted_and_named_on_demand(ready: Machine, work: Path) -> None:
    commit(ready, work, {f"{i:02}.bin": b"%d" % i for i in range(12)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    for verb in ("status", "fsck"):
        told = ready.gd(ready.root / "clone", verb).stdout
        assert "  09.bin\n  … and 2 more (-v names all)\n" in told
        assert "10.bin" not in told
        for command in ([verb, "-v"], ["-v", verb]):
            told = ready.gd(ready.root / "clone", *command).stdout
            assert "  10.bin\n  11.bin\n" in told
            assert "more" not in told


def test_keys_that_a_tracked_file_must_not_hold_are_told_once(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a"})
    with (work / ".datasetsconfig").open("a") as file:
        file.write('[filter "datasets"]\n\tprocess = evil\n')
    for verb in ("status", "push"):
        assert ready.gd(work, verb).stderr.count("filter.datasets.process") == 1


def test_a_bare_repository_says_what_needs_a_work_tree(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "--bare", "origin.git", "bare.git")
    bare = ready.root / "bare.git"
    for verb in (["fetch", "--all"], ["ls-files"], ["fsck"], ["push"]):
        assert ready.gd(bare, *verb).returncode == 0
    for verb in (["status"], ["track"], ["track", "*.x"], ["pull"], ["add", "x"]):
        refused = ready.gd(bare, *verb, check=False)
        assert refused.returncode == 3
        assert "work tree" in refused.stderr


def test_fsck_does_not_call_good_what_is_not_here(ready: Machine, work: Path) -> None:
    for name in ("a.bin", "b.bin"):  # a pack for each
        (work / name).write_bytes(name.encode() * 1000)
        ready.git(work, "add", "-A")
        ready.git(work, "commit", "-qm", name)
        ready.git(work, "push", "-q", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    told = ready.gd(ready.root / "clone", "fsck").stdout
    assert told.endswith("checked 0 files: could not check 2 files, whose data is not here\n")
    ready.gd(ready.root / "clone", "pull", "--include", "a.bin")
    told = ready.gd(ready.root / "clone", "fsck").stdout
    assert told.endswith("checked 1 file: all good; could not check 1 file, whose data is not here\n")
    ready.gd(ready.root / "clone", "pull")
    assert ready.gd(ready.root / "clone", "fsck").stdout == "checked 2 files: all good\n"

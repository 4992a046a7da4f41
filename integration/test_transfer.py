"""Data on its way to a folder and back: refusals, races, damage, and what comes after a push without its hook."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from machines import GIT_DATASETS, Machine, digests, is_clean, pointer


def commit(machine: Machine, work: Path, files: dict[str, bytes], message: str = "files") -> None:
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
        os.utime(work / name, (1_700_000_000, 1_700_000_000))  # old enough that git does not read it again
    machine.git(work, "add", "-A")
    machine.git(work, "commit", "-qm", message)


def packs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pack"))


def test_a_push_whose_data_is_gone_stops_before_the_refs_move(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 5000, "b.bin": b"b" * 5000}, "two")
    for pack in packs(work / ".git/datasets"):
        pack.unlink()
    commit(ready, work, {"c.bin": b"c" * 5000}, "one more")
    refused = ready.git(work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "a.bin" in refused.stderr
    assert pointer(b"a" * 5000).split()[3].removeprefix("sha256:")[:10] in refused.stderr
    assert ready.git(ready.root / "origin.git", "branch").stdout == ""
    assert not list((ready.root / "data").rglob("index/*"))


def test_one_missing_object_of_a_folder_stops_the_push_by_name(ready: Machine, work: Path) -> None:
    commit(ready, work, {"d/7.bin": b"content 7" * 100}, "the one that will be missing")
    for pack in packs(work / ".git/datasets"):
        pack.unlink()
    commit(ready, work, {f"d/{i}.bin": b"content %d" % i * 100 for i in range(100) if i != 7}, "the other 99")
    refused = ready.git(work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "d/7.bin" in refused.stderr
    assert not packs(ready.root / "data")


def test_two_pushes_at_once_lose_nothing(ready: Machine, work: Path) -> None:
    ready.git(work, "push", "-q", "-u", "origin", "main")
    clones = []
    for name in ("left", "right"):
        ready.git(ready.root, "clone", "-q", "origin.git", name)
        ready.git(ready.root / name, "checkout", "-qb", name)
        clones.append(ready.root / name)
    for turn in range(20):
        for clone in clones:
            content = {
                f"{clone.name}-{turn}.bin": f"{clone.name} {turn}".encode() * 400,
                "same.bin": b"%d" % turn * (999 + turn),  # another size: its times are no news to git
            }
            commit(ready, clone, content, f"{turn}")
        running = [
            subprocess.Popen(["git", "push", "-q", "origin", "HEAD"], cwd=clone, env=ready.env) for clone in clones
        ]
        assert [push.wait(60) for push in running] == [0, 0]
    for clone in clones:
        ready.git(ready.root, "clone", "-q", "-b", clone.name, "origin.git", f"{clone.name}-again")
        assert digests(ready.root / f"{clone.name}-again") == digests(clone)


def test_the_first_data_of_a_clone_without_any_is_sent(ready: Machine, work: Path) -> None:
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "theirs")
    theirs = ready.root / "theirs"
    (theirs / "a.bin").write_bytes(b"a" * 3000)
    os.utime(theirs / "a.bin", (1_700_000_000, 1_700_000_000))  # old enough that git has no reason to read it
    ready.gd(theirs, "add", ".")
    ready.git(theirs, "commit", "-qm", "the first")
    ready.git(theirs, "push", "-q")
    assert packs(ready.root / "data")


def test_corruption_in_the_store_is_caught_and_mended(ready: Machine, work: Path) -> None:
    content = os.urandom(400_000)
    commit(ready, work, {"a.bin": content, "b.bin": b"b" * 7000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    (pack,) = packs(work / ".git/datasets")
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(damaged)

    found = ready.gd(work, "fsck", check=False)
    assert found.returncode == 1
    assert "a.bin" in found.stdout
    assert "--repair" in found.stdout
    (work / "a.bin").unlink()
    ready.git(work, "checkout", "--", "a.bin")
    assert (work / "a.bin").read_bytes() == content, "the good copy came from the remote"
    assert ready.gd(work, "fsck").returncode == 0


def test_fsck_repairs_from_the_work_tree_and_from_the_remote(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": os.urandom(400_000)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    for has_file in (True, False):
        for pack in packs(work / ".git/datasets/packs"):
            damaged = bytearray(pack.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            pack.chmod(0o644)
            pack.write_bytes(damaged)
        if not has_file:
            (work / "a.bin").unlink()
        assert ready.gd(work, "fsck", check=False).returncode == 1
        assert ready.gd(work, "fsck", "--repair").returncode == 0
        assert ready.gd(work, "fsck").returncode == 0


def test_corruption_of_a_large_file_is_mended_too(ready: Machine, work: Path) -> None:
    content = os.urandom(18 * 1024 * 1024)
    commit(ready, work, {"a.bin": content})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    (pack,) = packs(work / ".git/datasets")
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(damaged)
    (work / "a.bin").unlink()
    ready.git(work, "checkout", "--", "a.bin")
    assert (work / "a.bin").read_bytes() == content


def test_corruption_is_never_checked_out_nor_pushed(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": os.urandom(300_000)})
    (pack,) = packs(work / ".git/datasets")
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(damaged)
    refused = ready.git(work, "push", "origin", "main", check=False)
    assert refused.returncode != 0
    assert "a.bin" in refused.stderr
    (work / "a.bin").unlink()
    told = ready.git(work, "checkout", "--", "a.bin")
    assert "a.bin" in told.stderr
    assert (work / "a.bin").read_bytes().startswith(b"version git-datasets/1\n")


def test_a_short_body_fails_that_file_and_is_fetched_again(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": os.urandom(500_000)}, "first")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    first = set(packs(ready.root / "data"))
    commit(ready, work, {"b.bin": os.urandom(500_000)}, "second")
    ready.git(work, "push", "-q", "origin", "main")
    (pack,) = set(packs(ready.root / "data")) - first
    whole = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(whole[: len(whole) * 83 // 100])

    told = ready.git(ready.root, "clone", "origin.git", "elsewhere")
    elsewhere = ready.root / "elsewhere"
    assert "b.bin" in told.stderr
    assert (elsewhere / "a.bin").read_bytes() == (work / "a.bin").read_bytes()
    failed = ready.gd(elsewhere, "pull", check=False)
    assert failed.returncode != 0
    assert (elsewhere / "b.bin").stat().st_size < 1024
    pack.write_bytes(whole)
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)
    assert is_clean(ready, elsewhere)


def test_push_without_the_hook_is_mended_by_push(ready: Machine, work: Path) -> None:
    commit(ready, work, {"earlier.bin": b"earlier"})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    commit(ready, work, {"a.bin": b"a" * 9000, "b.bin": b"b" * 9000})
    ready.git(work, "push", "-q", "--no-verify", "origin", "main")
    told = ready.git(ready.root, "clone", "origin.git", "early")
    assert "a.bin" in told.stderr
    assert "b.bin" in told.stderr
    early = ready.gd(ready.root / "early", "pull", check=False)
    assert early.returncode == 6
    assert "git datasets push" in early.stderr

    ready.gd(work, "push")
    ready.gd(ready.root / "early", "pull")
    assert digests(ready.root / "early") == digests(work)
    assert "nothing to send" in ready.gd(work, "push").stderr


def test_tags_of_blobs_and_trees_are_pushed(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 5000})
    ready.git(work, "tag", "blob", "HEAD:a.bin")
    ready.git(work, "tag", "tree", "HEAD^{tree}")
    ready.git(work, "push", "-q", "origin", "blob", "tree", "main")
    assert ready.git(ready.root / "origin.git", "tag").stdout.split() == ["blob", "tree"]


def test_a_push_that_fails_makes_no_remote(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 5000})
    shutil.rmtree(work / ".git/datasets")
    assert ready.gd(work, "push", check=False).returncode == 6
    assert not (ready.root / "data").exists()


def test_damage_on_the_remote_is_told_with_what_to_delete(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": os.urandom(400_000), "b.bin": b"b"})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    (pack,) = packs(ready.root / "data")
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.write_bytes(damaged)
    told = ready.git(ready.root, "clone", "origin.git", "elsewhere").stderr
    assert "a.bin" in told
    failed = ready.gd(ready.root / "elsewhere", "pull", check=False)
    assert failed.returncode == 6
    assert "a.bin" in failed.stderr
    named = next(word for word in failed.stderr.split() if word.endswith(".pack"))
    (ready.root / "data" / named).unlink()
    ready.gd(work, "push", "--all")
    ready.gd(ready.root / "elsewhere", "pull")
    assert digests(ready.root / "elsewhere") == digests(work)


def test_a_store_that_is_shared_by_a_group_can_be_written_by_it(ready: Machine) -> None:
    ready.run("sh", "-c", "umask 002; git init -q --shared=group shared", cwd=ready.root)
    shared = ready.root / "shared"
    ready.gd(shared, "track", "*.bin")
    (shared / "a.bin").write_bytes(b"a" * 5000)
    ready.run("sh", "-c", "umask 002; git add -A", cwd=shared)
    store = shared / ".git/datasets"
    assert store.stat().st_mode & 0o7777 == 0o2775
    assert (store / "catalog.sqlite").stat().st_mode & 0o777 == 0o664
    assert all(pack.stat().st_mode & 0o040 for pack in packs(store))


def test_only_what_is_committed_leaves_the_machine(ready: Machine, work: Path) -> None:
    secret = b"a secret that was staged and dropped " * 300
    (work / "a.bin").write_bytes(secret)
    ready.gd(work, "add", "a.bin")
    commit(ready, work, {"a.bin": os.urandom(9000)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    import hashlib

    oid = hashlib.sha256(secret).digest()
    assert not [file for file in (ready.root / "data").rglob("*") if file.is_file() and oid in file.read_bytes()]


def test_tmpdir_on_another_file_system(ready: Machine, work: Path, tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm") / f"gds-{os.getpid()}-{time.time_ns()}"
    elsewhere.mkdir()
    try:
        env = {"TMPDIR": str(elsewhere)}
        (work / "a.bin").write_bytes(os.urandom(3_000_000))
        ready.git(work, "add", "a.bin", env=env)
        ready.git(work, "commit", "-qm", "a", env=env)
        ready.git(work, "push", "-q", "-u", "origin", "main", env=env)
        ready.git(ready.root, "clone", "-q", "origin.git", "pulled", env={**env, "GIT_DATASETS_SKIP_SMUDGE": "1"})
        ready.gd(ready.root / "pulled", "pull", env=env)
        assert digests(ready.root / "pulled") == digests(work)
        assert list(elsewhere.iterdir()) == []
    finally:
        shutil.rmtree(elsewhere)


def test_include_and_exclude_as_in_gitignore(ready: Machine, work: Path) -> None:
    names = ["foo/x.bin", "bar/foo.bin", "d/a.bin", "d,e/b.bin", "sub/one.bin", "sub/deep/two.bin"]
    contents = {name: os.urandom(1_200_000) for name in names}  # a frame of the pack each, so that one can come alone
    commit(ready, work, contents)
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    elsewhere = ready.root / "elsewhere"

    def local() -> set[str]:
        lines = ready.gd(elsewhere, "ls-files").stdout.splitlines()
        return {line.split(" ", 2)[2] for line in lines if line.split(" ", 2)[1] == "*"}

    ready.gd(elsewhere / "sub", "fetch", "--include", "./one.bin")
    assert local() == {"sub/one.bin"}
    ready.gd(elsewhere, "fetch", "--include", "d,e")
    assert local() == {"sub/one.bin", "d,e/b.bin"}
    ready.gd(elsewhere, "fetch", "--include", "foo/", "--exclude", "*.txt")
    assert local() == {"sub/one.bin", "d,e/b.bin", "foo/x.bin"}
    told = ready.gd(elsewhere, "fetch", "--include", "nothing/like/it")
    assert "nothing/like/it" in told.stderr
    ready.gd(elsewhere, "pull", "--include", "/sub/", "--exclude", "deep/")
    assert (elsewhere / "sub/one.bin").read_bytes() == contents["sub/one.bin"]
    assert (elsewhere / "sub/deep/two.bin").stat().st_size < 1024
    ready.gd(elsewhere, "pull")
    assert digests(elsewhere) == digests(work)


def test_a_remote_that_a_commit_changed_is_confirmed_before_a_push(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "theirs")
    theirs = ready.root / "theirs"
    ready.gd(theirs, "link", ready.root / "other")
    ready.git(theirs, "commit", "-qam", "another remote")
    ready.git(theirs, "push", "-q")
    ready.git(work, "pull", "-q")
    commit(ready, work, {"b.bin": b"b" * 3000})
    before = packs(ready.root / "other")
    refused = ready.git(work, "push", check=False)
    assert refused.returncode != 0
    assert f"git datasets link {ready.root / 'other'}" in refused.stderr
    assert packs(ready.root / "other") == before
    ready.gd(work, "link", ready.root / "other")
    ready.git(work, "push", "-q")


def test_a_fetch_from_a_changed_remote_confirms_nothing(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "theirs")
    theirs = ready.root / "theirs"
    ready.gd(theirs, "link", ready.root / "other")
    commit(ready, theirs, {"b.bin": b"b" * 3000}, "data in another place")
    ready.git(theirs, "push", "-q")
    ready.git(work, "pull", "-q")
    assert (work / "b.bin").read_bytes() == b"b" * 3000
    commit(ready, work, {"c.bin": b"c" * 3000})
    refused = ready.git(work, "push", check=False)
    assert refused.returncode != 0
    assert f"git datasets link {ready.root / 'other'}" in refused.stderr


def test_a_push_to_another_remote_takes_history_along(ready: Machine, work: Path) -> None:
    for turn in range(3):
        commit(ready, work, {"a.bin": b"%d" % turn * (3000 + turn)}, f"version {turn}")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.gd(work, "link", ready.root / "moved")
    commit(ready, work, {"b.bin": b"b" * 3000}, "moved")
    ready.git(work, "push", "-q")
    shutil.rmtree(ready.root / "data")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    ready.git(ready.root / "elsewhere", "checkout", "-q", "HEAD~3")
    assert (ready.root / "elsewhere/a.bin").read_bytes() == b"0" * 3000


def test_a_drive_that_is_not_mounted_is_not_filled(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a.bin": b"a" * 5000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    data = ready.root / "data"
    data.rename(ready.root / "unmounted")
    data.mkdir()
    commit(ready, work, {"b.bin": b"b" * 5000})
    refused = ready.git(work, "push", check=False)
    assert refused.returncode != 0
    assert "is the drive mounted" in refused.stderr
    assert "git datasets push --all" in refused.stderr
    assert list(data.iterdir()) == []
    assert ready.git(work, "datasets", "push", check=False).returncode != 0
    ready.git(work, "datasets", "push", "--all")  # it is said to begin anew: then with all that there is
    ready.git(work, "push")
    shutil.rmtree(ready.root / "unmounted")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert {f.name: f.stat().st_size for f in (ready.root / "elsewhere").glob("*.bin")} == {
        "a.bin": 5000,
        "b.bin": 5000,
    }


def test_without_a_named_remote_data_goes_beside_a_local_origin(ready: Machine) -> None:
    origin = ready.bare()
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    ready.gd(work, "track", "*.bin")
    commit(ready, work, {"a.bin": b"a" * 3000})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert digests(ready.root / "elsewhere") == digests(work)


def test_no_remote_at_all_is_refused_with_the_way_out(ready: Machine, work: Path) -> None:
    plain = ready.repo("plain")
    ready.gd(plain, "track", "*.bin")
    ready.git(plain, "remote", "add", "origin", "https://git.example.org/plain.git")
    commit(ready, plain, {"a.bin": b"a" * 3000})
    refused = ready.gd(plain, "push", check=False)
    assert refused.returncode == 8
    assert "git datasets link" in refused.stderr


SLOW_TO_END = """
import sys, time
from gds_lfs import cli
from gds_lfs.porcelain import sync

def push(*_, **__):
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        time.sleep(3)  # as requests do that are under way

sync.push = push
sys.argv = ["git-datasets", "push"]
cli.main()
"""


def test_an_interrupt_is_told_at_once(ready: Machine, work: Path) -> None:
    command = [sys.executable, "-c", SLOW_TO_END]
    with subprocess.Popen(
        command, cwd=work, env=ready.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "git datasets: error: interrupted\n"
        assert process.poll() is None, "the case"
        assert process.wait(30) == 130
        assert process.stderr.read().strip() == ""


def test_a_remote_that_a_commit_took_away_is_no_other_remote(ready: Machine, work: Path) -> None:
    ready.git(work, "rm", "-qf", ".datasetsconfig")
    commit(ready, work, {"a.bin": b"a" * 3000})
    refused = ready.gd(work, "push", "https://git.example.org/x.git", check=False)
    assert refused.returncode == 8
    assert "no dataset remote is known" in refused.stderr


def test_progress_is_for_terminals_and_stdout_stays_empty(ready: Machine, work: Path) -> None:
    commit(ready, work, {f"{i}.bin": os.urandom(200_000) for i in range(30)})
    piped = ready.gd(work, "push")
    assert piped.stdout == ""
    assert "\r" not in piped.stderr
    assert len(piped.stderr.splitlines()) == 1
    quiet = ready.gd(work, "-q", "push")
    assert quiet.stdout == quiet.stderr == ""
    cloned = ready.git(ready.root, "clone", "-q", "origin.git", "empty", check=False)
    assert "\r" not in cloned.stderr


def test_exit_codes_are_those_of_the_readme(ready: Machine, work: Path) -> None:
    assert ready.gd(ready.root, "status", check=False).returncode == 3
    assert ready.gd(work, "fetch", "--nonsense", check=False).returncode == 2
    assert ready.gd(work, "track", "nothere.py", check=False).returncode == 4
    assert subprocess.run([GIT_DATASETS, "version"], check=False, capture_output=True).returncode == 0

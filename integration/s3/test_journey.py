"""The whole way over real servers, with real git: push, clone, take a part, two at once, many files."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from machines import Machine, digests, is_clean
from s3_servers import SEAWEEDFS, Server

on_seaweedfs = pytest.mark.parametrize(
    "server", [pytest.param(SEAWEEDFS.name, marks=pytest.mark.xdist_group(SEAWEEDFS.name))], indirect=True
)
VERBOSE = {"GIT_DATASETS_VERBOSE": "1"}


def commit(machine: Machine, work: Path, files: dict[str, bytes], message: str = "files") -> None:
    for name, content in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    machine.gd(work, "add", ".")
    machine.git(work, "commit", "-qm", message)


def requests(told: str) -> int:
    """How many were sent, as the command says."""
    (number,) = re.findall(r"([0-9,]+) requests? to s3://", told)
    return int(number.replace(",", ""))


def test_push_clone_and_a_part(ready: Machine, work: Path) -> None:
    commit(ready, work, {"a/x.bin": os.urandom(3_000_000), "b/y.bin": b"y" * 3000, "b/ü z.bin": os.urandom(200_000)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "whole")
    assert digests(ready.root / "whole") == digests(work)
    assert is_clean(ready, ready.root / "whole")

    ready.git(ready.root, "clone", "-q", "origin.git", "part", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    part = ready.root / "part"
    ready.gd(part, "pull", "--include", "b/")
    assert (part / "b/y.bin").read_bytes() == b"y" * 3000
    assert (part / "a/x.bin").stat().st_size < 1024
    ready.gd(part, "pull")
    assert digests(part) == digests(work)

    commit(ready, work, {"a/x.bin": os.urandom(1_000_000)}, "another version")
    ready.git(work, "push", "-q")
    ready.git(part, "pull", "-q")
    assert digests(part) == digests(work)
    ready.git(part, "reset", "-q", "--hard", "HEAD~1")
    assert is_clean(ready, part)
    assert ready.gd(part, "fsck").returncode == 0


def test_a_part_is_fetched_and_then_pulled_without_the_server(ready: Machine, work: Path) -> None:
    # Large enough that none comes along with its neighbours in a pack.
    files = {f"{folder}/{name}.bin": os.urandom(6_000_000) for folder in ("a", "b") for name in ("x", "y")}
    commit(ready, work, files)
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "part", env={"GIT_DATASETS_SKIP_SMUDGE": "1"})
    part = ready.root / "part"

    def filled() -> set[str]:
        return {name for name, content in files.items() if (part / name).read_bytes() == content}

    ready.gd(part, "fetch", "--include", "b/", "--exclude", "y.bin")
    assert filled() == set(), "the work tree is left alone"
    alone = {"AWS_SECRET_ACCESS_KEY": "wrong"}
    ready.gd(part, "pull", "--include", "b/x.bin", env=alone)
    assert filled() == {"b/x.bin"}
    refused = ready.gd(part, "pull", "--include", "b/", env=alone, check=False)
    assert refused.returncode == 8, "what was excluded is not here"
    ready.gd(part, "pull", "--exclude", "a/x.bin")
    assert filled() == files.keys() - {"a/x.bin"}
    ready.gd(part, "fetch")
    ready.gd(part, "pull", env=alone)
    assert digests(part) == digests(work)
    assert is_clean(ready, part)


def test_two_pushes_at_once_lose_nothing(ready: Machine, work: Path) -> None:
    ready.git(work, "push", "-q", "-u", "origin", "main")
    clones = []
    for name in ("left", "right"):
        ready.git(ready.root, "clone", "-q", "origin.git", name)
        ready.git(ready.root / name, "checkout", "-qb", name)
        clones.append(ready.root / name)
    for turn in range(5):
        for clone in clones:
            files = {f"{clone.name}-{turn}.bin": f"{clone.name} {turn}".encode() * 400, "same.bin": b"%d" % turn * 999}
            commit(ready, clone, files, f"{turn}")
        pushes = [subprocess.Popen(["git", "push", "-q", "origin", "HEAD"], cwd=c, env=ready.env) for c in clones]
        assert [push.wait(120) for push in pushes] == [0, 0]
    for clone in clones:
        told = ready.git(ready.root, "clone", "-q", "-b", clone.name, "origin.git", f"{clone.name}-again").stderr
        assert told == ""
        assert digests(ready.root / f"{clone.name}-again") == digests(clone)


def test_a_bucket_with_a_dot(ready: Machine, work: Path, server: Server) -> None:
    server.client().create_bucket(Bucket="a.dotted.bucket")  # type: ignore[attr-defined]
    ready.gd(work, "link", "s3://a.dotted.bucket/deep/prefix", "--endpoint", server.endpoint)
    commit(ready, work, {"a.bin": os.urandom(50_000)})
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert digests(ready.root / "elsewhere") == digests(work)


def test_the_servers_own_errors_in_words(ready: Machine, work: Path, server: Server) -> None:
    commit(ready, work, {"a.bin": b"a" * 3000})
    refused = ready.gd(work, "push", env={"AWS_SECRET_ACCESS_KEY": "wrong"}, check=False)
    assert refused.returncode == 8
    assert re.search("credentials|no permission", refused.stderr), refused.stderr
    ready.gd(work, "link", "s3://no-such-bucket-anywhere/x", "--endpoint", server.endpoint)
    refused = ready.gd(work, "push", check=False)
    assert refused.returncode == 8
    assert "no bucket 'no-such-bucket-anywhere'" in refused.stderr


@on_seaweedfs
def test_ten_thousand_files_take_few_requests(ready: Machine, work: Path) -> None:
    noise = os.urandom(10_000 + 10_000)
    commit(ready, work, {f"d/{i}.bin": noise[i : i + 10_000] for i in range(10_000)})
    told = ready.git(work, "push", "-q", "-u", "origin", "main", env=VERBOSE).stderr
    assert requests(told) <= 20
    assert requests(ready.gd(work, "-v", "push").stderr) <= 5
    cache = {"GIT_DATASETS_CACHE": str(ready.root / "fresh")}
    told = ready.git(ready.root, "clone", "-q", "origin.git", "fresh-clone", env={**VERBOSE, **cache}).stderr
    assert requests(told) <= 40
    assert digests(ready.root / "fresh-clone") == digests(work)


@on_seaweedfs
def test_sixty_four_open_files_are_enough(ready: Machine, work: Path) -> None:
    limited = ("bash", "-c", 'ulimit -n 64; exec "$@"', "bash")
    commit(ready, work, {f"{i}.bin": os.urandom(200_000) for i in range(500)})
    ready.run(*limited, "git", "push", "-q", "-u", "origin", "main", cwd=work)
    ready.run(*limited, "git", "clone", "-q", "origin.git", "elsewhere", cwd=ready.root)
    assert digests(ready.root / "elsewhere") == digests(work)


@on_seaweedfs
def test_memory_stays_flat_while_a_large_file_is_pushed(ready: Machine, work: Path) -> None:
    with (work / "large.bin").open("wb") as file:
        for _ in range(600):
            file.write(os.urandom(1 << 20))
    ready.gd(work, "add", ".")
    ready.git(work, "commit", "-qm", "large")
    ready.run("bash", "-c", "ulimit -v 2000000; exec git push -q -u origin main", cwd=work)
    assert "nothing to send" in ready.gd(work, "push").stderr

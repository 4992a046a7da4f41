"""Stock git-lfs, whose objects the agent moves to and from a bucket: Debian's, and a newer one (GIT_LFS_NEW)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from machines import Machine
from s3_servers import Server

FOUND = {"debian": shutil.which("git-lfs"), "newer": os.environ.get("GIT_LFS_NEW")}


@pytest.fixture(params=FOUND)
def ready(request: pytest.FixtureRequest, ready: Machine) -> Machine:
    """A machine that has this git-lfs too."""
    program = FOUND[request.param]
    if program is None:
        message = f"the {request.param} git-lfs is not here"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    programs = ready.root / "programs"
    programs.mkdir()
    (programs / "git-lfs").symlink_to(program)
    ready.env["PATH"] = f"{programs}:{ready.env['PATH']}"
    return ready


def configure(machine: Machine, repo: Path, server: Server, bucket: str) -> None:
    machine.git(repo, "lfs", "install", "--local")
    machine.gd(repo, "install", "--lfs-agent")
    machine.gd(repo, "link", "--local", f"s3://{bucket}/data", "--endpoint", server.endpoint)


@pytest.fixture
def work(ready: Machine, server: Server, bucket: str) -> Path:
    """A repository of git-lfs with `*.bin` in it, and an origin."""
    origin, work = ready.bare(), ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    configure(ready, work, server, bucket)
    ready.git(work, "lfs", "track", "*.bin")
    return work


def commit(machine: Machine, repo: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (repo / name).write_bytes(content)
    machine.git(repo, "add", "-A")
    machine.git(repo, "commit", "-qm", "files")


def packs(server: Server, bucket: str) -> set[str]:
    keys = [each["Key"] for each in server.client().list_objects_v2(Bucket=bucket)["Contents"]]  # type: ignore[attr-defined]
    return {key for key in keys if key.startswith("data/packs/")}


def test_push_and_clone(ready: Machine, work: Path, server: Server, bucket: str) -> None:
    files = {f"{number:03}.bin": number.to_bytes(2, "big") * 700 for number in range(250)}
    files["large.bin"] = os.urandom(3_000_000)
    commit(ready, work, files)
    ready.git(work, "push", "-q", "-u", "origin", "main")
    assert 1 <= len(packs(server, bucket)) < 10

    ready.git(ready.root, "clone", "-q", "origin.git", "clone", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    clone = ready.root / "clone"
    configure(ready, clone, server, bucket)
    ready.git(clone, "lfs", "fetch", "--include", "00*.bin", "--exclude", "005.bin")
    assert len([path for path in (clone / ".git/lfs/objects").rglob("*") if path.is_file()]) == 9
    ready.git(clone, "lfs", "pull")
    for name, content in files.items():
        assert (clone / name).read_bytes() == content


def test_what_git_lfs_and_git_datasets_push_is_stored_once(
    ready: Machine, work: Path, server: Server, bucket: str
) -> None:
    files = {f"{number}.bin": os.urandom(2000 + number) for number in range(20)}
    files["large.bin"] = os.urandom(3_000_000)
    commit(ready, work, files)
    ready.git(work, "push", "-q", "-u", "origin", "main")
    by_lfs = packs(server, bucket)
    assert by_lfs

    ours = ready.repo("ours")
    ready.gd(ours, "track", "*.bin")
    ready.gd(ours, "link", "--local", f"s3://{bucket}/data", "--endpoint", server.endpoint)
    commit(ready, ours, files)
    ready.gd(ours, "push")
    assert packs(server, bucket) == by_lfs

    new = {"new.bin": os.urandom(400_000)}
    commit(ready, ours, new)
    ready.gd(ours, "push")
    by_both = packs(server, bucket)
    assert len(by_both) == len(by_lfs) + 1
    commit(ready, work, new)
    ready.git(work, "push", "-q")
    assert packs(server, bucket) == by_both

"""Stock git-lfs, whose objects the agent moves to and from a bucket."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from machines import Machine
from s3_servers import Server


def test_push_and_clone(ready: Machine, server: Server, bucket: str) -> None:
    if shutil.which("git-lfs") is None:
        pytest.fail("CI must have git-lfs") if os.environ.get("CI") else pytest.skip("git-lfs is not here")
    place = f"s3://{bucket}/lfs"

    def configure(repo: Path) -> None:
        ready.gd(repo, "install", "--lfs-agent")
        ready.gd(repo, "link", "--local", place, "--endpoint", server.endpoint)

    origin, work = ready.bare(), ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    ready.git(work, "lfs", "install", "--local")
    ready.git(work, "lfs", "track", "*.bin")
    configure(work)
    for number in range(250):
        (work / f"{number:03}.bin").write_bytes(number.to_bytes(2, "big") * 700)
    (work / "large.bin").write_bytes(os.urandom(3_000_000))
    ready.git(work, "add", "-A")
    ready.git(work, "commit", "-qm", "files")
    ready.git(work, "push", "-q", "-u", "origin", "main")
    keys = [each["Key"] for each in server.client().list_objects_v2(Bucket=bucket)["Contents"]]  # type: ignore[attr-defined]
    assert 1 <= len([key for key in keys if key.startswith("lfs/packs/")]) < 10

    ready.git(ready.root, "clone", "-q", origin, "clone", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    clone = ready.root / "clone"
    ready.git(clone, "lfs", "install", "--local")
    configure(clone)
    ready.git(clone, "lfs", "pull")
    for name in (*(f"{number:03}.bin" for number in range(250)), "large.bin"):
        assert (clone / name).read_bytes() == (work / name).read_bytes()

"""A real S3 server for a session of tests, and machines whose users have a bucket on it.

Where a server is not installed its tests are skipped, but with CI=true they fail: there, nothing may be skipped.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines import Machine
from s3_servers import KINDS, Server, running

BUCKETS = itertools.count(1)


# All tests of one server in one worker, or each worker would start a server of its own.
@pytest.fixture(scope="session", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in KINDS])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    kind = KINDS[request.param]
    if not kind.is_installed:
        message = f"{kind.name} is not in {kind.bin} (.ci/run installs it)"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    with running(kind, tmp_path_factory.mktemp(kind.name)) as started:
        yield started


@pytest.fixture
def bucket(server: Server) -> str:
    """A new bucket."""
    name = f"bucket-{os.getpid()}-{next(BUCKETS)}"
    server.client().create_bucket(Bucket=name)  # type: ignore[attr-defined]
    return name


@pytest.fixture
def ready(tmp_path: Path, server: Server) -> Machine:
    """A machine whose user has run `git datasets install` and has keys for the server."""
    machine = Machine(tmp_path)
    machine.env.update(server.environment)
    machine.gd(machine.root, "install")
    return machine


@pytest.fixture
def work(ready: Machine, server: Server, bucket: str) -> Path:
    """A repository with `*.bin` tracked, an origin, and a dataset remote on the server."""
    origin = ready.bare()
    work = ready.repo()
    ready.git(work, "remote", "add", "origin", origin)
    ready.gd(work, "track", "*.bin")
    ready.gd(work, "link", f"s3://{bucket}/data", "--endpoint", server.endpoint)
    ready.git(work, "add", ".gitattributes")
    ready.git(work, "commit", "-qm", "set up")
    return work

"""The kinds of remotes that need no other program: each has to keep the whole contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from contract import *  # noqa: F403 - the tests of the contract

from gds_lfs.remote.base import Remote, open_remote
from gds_lfs.remote.s3_options import S3Options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from s3_stub import Stub


def directory(base: Path, request: pytest.FixtureRequest) -> Remote:
    return open_remote("remote", base)


def s3(base: Path, request: pytest.FixtureRequest) -> Remote:
    stub: Stub = request.getfixturevalue("stub")
    return open_remote("s3://bucket/some/prefix", base, S3Options(endpoint=stub.endpoint))


def s3_in_pages(base: Path, request: pytest.FixtureRequest) -> Remote:
    request.getfixturevalue("stub").page = 2
    return s3(base, request)


FACTORIES: dict[str, Callable[[Path, pytest.FixtureRequest], Remote]] = {
    "directory": directory,
    "s3": s3,
    "s3 in pages": s3_in_pages,
}


@pytest.fixture(params=FACTORIES)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    made = FACTORIES[request.param](tmp_path, request)
    made.create()
    return made

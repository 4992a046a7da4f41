"""The contract of remotes, kept over real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract import *  # noqa: F403 - the tests of the contract
from s3_servers import Server

from gds_lfs.remote.base import Remote, open_remote
from gds_lfs.remote.s3_options import S3Options


@pytest.fixture
def remote(server: Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remote:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return open_remote(f"s3://{bucket}/some/prefix", tmp_path, S3Options(endpoint=server.endpoint))

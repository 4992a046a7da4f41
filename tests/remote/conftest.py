"""An S3 server that fails on demand, and a user who has keys for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_stub import Stub, environment


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody with access keys in the environment, far from the real user's files."""
    for name, value in environment(tmp_path).items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)


@pytest.fixture
def stub(user: None) -> Iterator[Stub]:
    with Stub() as running:
        yield running

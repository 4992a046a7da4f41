from __future__ import annotations

import random

import pytest

from gds_lfs.store.local import LocalStore


@pytest.fixture
def root(tmp_path):
    return tmp_path / "git dir" / "datasets"


@pytest.fixture
def store(root):
    store = LocalStore(root)
    yield store
    store.close()


@pytest.fixture
def large():
    """A content of many chunks, part of it compressible."""
    return random.Random(7).randbytes(2_500_000) + b"a line of text\n" * 60_000 + random.Random(8).randbytes(2_500_000)

from __future__ import annotations

import io
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gds_lfs.content.chunker import SMALL, split
from gds_lfs.errors import GitDatasetsError

MIXED = random.Random(1).randbytes(1_500_000) + bytes(600_000) + b"the same line\n" * 40_000
SQLITE = b"SQLite format 3\0" + random.Random(2).randbytes(300_000)


def sizes(data: bytes) -> list[int]:
    return [len(chunk) for chunk in split(io.BytesIO(data).read)]


def test_the_cut_points_never_change():
    # fmt: off
    golden = [
        33258, 78308, 80973, 39403, 28737, 67810, 159371, 71728, 135843, 117997,
        63250, 49701, 162932, 209519, 55423, 80378, 262144, 262144, 262144, 262144,
        176793,
    ]
    # fmt: on
    assert sizes(MIXED) == golden


@given(st.integers(1000, 100_000), st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_they_do_not_depend_on_how_the_content_arrives(largest, seed):
    rng = random.Random(seed)
    stream = io.BytesIO(MIXED)
    chunks = list(split(lambda size: stream.read(min(size, rng.randint(1, largest)))))
    assert [len(chunk) for chunk in chunks] == sizes(MIXED)
    assert b"".join(chunks) == MIXED


def test_up_to_128_kib_is_one_chunk():
    assert sizes(b"") == []
    assert sizes(b"x") == [1]
    assert sizes(MIXED[:SMALL]) == [SMALL]
    assert sizes(SQLITE[:SMALL]) == [SMALL]
    assert sum(sizes(MIXED[: SMALL + 1])) == SMALL + 1


def test_a_sqlite_database_is_cut_in_blocks():
    assert sizes(SQLITE) == [65536] * 4 + [len(SQLITE) - 4 * 65536]
    stream = io.BytesIO(SQLITE)
    assert b"".join(split(lambda size: stream.read(min(size, 1000)))) == SQLITE


def test_an_insertion_leaves_most_chunks_as_they_were():
    data = random.Random(3).randbytes(4_000_000)
    before = set(split(io.BytesIO(data).read))
    after = set(split(io.BytesIO(data[:1_000_000] + b"inserted" + data[1_000_000:]).read))
    assert len(after - before) <= 3


def test_the_slow_fallback_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfastcdc.cy", None)
    with pytest.raises(GitDatasetsError, match="no compiled extension"):
        sizes(MIXED)
    assert sizes(b"small") == [5]

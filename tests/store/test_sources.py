from __future__ import annotations

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.store.sources import Source, read_files
from gds_lfs.store.threads import Threads


@pytest.fixture
def threads():
    threads = Threads()
    yield threads
    threads.shutdown()


def test_a_source_counts_and_hashes(threads):
    pieces = [bytes([i]) * 50_000 for i in range(30)]
    remaining = iter(pieces)
    source = Source(lambda _: next(remaining, b""), threads)
    while source.read(50_000):
        pass
    assert source.size == 1_500_000
    assert source.oid() == oid_of(b"".join(pieces))


def test_files_of_a_batch(tmp_path):
    for name, size in [("empty", 0), ("small", 131_072), ("large", 131_073)]:
        (tmp_path / name).write_bytes(b"x" * size)
    empty, small, large = read_files([tmp_path / "empty", tmp_path / "small", tmp_path / "large"])
    assert empty.data == b""
    assert small.data == b"x" * 131_072
    assert large.data is None
    assert small.stat.st_size == 131_072


def test_a_device_has_no_size_and_is_read_to_its_end():
    (null,) = read_files(["/dev/null"])
    assert null.data == b""

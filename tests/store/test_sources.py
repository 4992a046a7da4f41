from __future__ import annotations

import threading
import time

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.content.pointer import Pointer
from gds_lfs.store.sources import Source, Threads, ahead, read_files


@pytest.fixture
def threads():
    threads = Threads()
    yield threads
    threads.shutdown()


def test_items_are_made_ahead_and_in_order(threads):
    made = []

    def items():
        for i in range(20):
            made.append(i)
            yield i

    produced = ahead(threads.cutter, items(), 3)
    assert next(produced) == 0
    assert list(produced) == list(range(1, 20))
    assert made == list(range(20))


def test_closing_waits_for_the_item_that_is_being_made(threads):
    at_work = threading.Event()
    done = []

    def items():
        yield 0
        at_work.set()
        time.sleep(0.05)
        done.append(1)
        yield 1

    produced = ahead(threads.cutter, items(), 3)
    assert next(produced) == 0
    at_work.wait()
    produced.close()
    assert done == [1]


def test_an_error_arrives_where_the_item_would(threads):
    def items():
        yield 0
        raise OSError("gone")

    produced = ahead(threads.cutter, items(), 3)
    assert next(produced) == 0
    with pytest.raises(OSError, match="gone"):
        next(produced)


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
    assert small.added.pointer == Pointer(oid_of(b"x" * 131_072), 131_072)
    assert large.data is None
    assert small.added.stat.st_size == 131_072


def test_a_device_has_no_size_and_is_read_to_its_end():
    (null,) = read_files(["/dev/null"])
    assert null.data == b""

from __future__ import annotations

import threading
import time

import pytest

from gds_lfs.store.threads import Threads, ahead, bundles, ordered


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


def test_ordered() -> None:
    def worker(job: int) -> int:
        time.sleep(0.003 if job % 4 == 0 else 0)
        return job

    assert list(ordered(range(40), worker)) == list(range(40))


def test_ordered_passes_errors_on_in_their_place() -> None:
    def worker(job: int) -> int:
        if job == 5:
            raise ValueError("five")
        return job

    results = ordered(range(100), worker)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(results)


def test_bundles_are_closed_when_they_are_full():
    assert list(bundles([b"aa", b"b", b"ccc", b"d"], len, 3)) == [[b"aa", b"b"], [b"ccc"], [b"d"]]
    assert list(bundles([], len, 3)) == []

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import SlowDownError
from gds_lfs.transfer.queue import Meter, Retry, retrying, run

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_job_is_done_once_and_told_in_this_thread() -> None:
    here = threading.current_thread()
    told: list[tuple[int, int]] = []

    def done(job: int, result: int) -> None:
        assert threading.current_thread() is here
        told.append((job, result))

    run(range(50), lambda job: job * job, workers=4, on_done=done)
    assert sorted(told) == [(job, job * job) for job in range(50)]


def test_no_jobs() -> None:
    run([], lambda _: pytest.fail("called"), workers=2, on_done=lambda *_: pytest.fail("called"))


def test_jobs_are_taken_only_when_there_is_room() -> None:
    alive = 0
    most = 0
    lock = threading.Lock()

    def jobs() -> Iterator[int]:
        nonlocal alive, most
        for job in range(30):
            with lock:
                alive += 1
                most = max(most, alive)
            yield job

    def done(job: int, result: None) -> None:
        nonlocal alive
        with lock:
            alive -= 1

    run(jobs(), lambda _: time.sleep(0.001), workers=3, on_done=done)
    assert most <= 3 + 2  # two wait, so that no worker has to


def test_what_fails_for_a_moment_is_tried_again() -> None:
    slept: list[float] = []
    left = {"a": 3, "b": 0, "c": 1}

    def worker(job: str) -> str:
        if left[job] > 0:
            left[job] -= 1
            raise TransientRemoteError(job)
        return job

    done: list[str] = []
    retry = Retry(attempts=4, base=1.0, random=lambda: 1.0, sleep=slept.append)
    run("abc", worker, workers=1, on_done=lambda job, _: done.append(job), retry=retry)
    assert sorted(done) == ["a", "b", "c"]
    assert slept == [1.0, 2.0, 4.0, 1.0]


def test_the_delay_grows_is_random_and_bounded() -> None:
    low, high = Retry(base=0.5, longest=8, random=lambda: 0.0), Retry(base=0.5, longest=8, random=lambda: 1.0)
    assert [low.delay(n) for n in range(1, 7)] == [0.25, 0.5, 1, 2, 4, 4]
    assert [high.delay(n) for n in range(1, 7)] == [0.5, 1, 2, 4, 8, 8]
    assert high.delay(1000) == 8


def test_it_gives_up_after_so_many_attempts() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        raise TransientRemoteError("down")

    with pytest.raises(TransientRemoteError, match="down"):
        retrying(call, Retry(attempts=3, sleep=lambda _: None))
    assert calls == 3


def test_what_stays_is_not_tried_again() -> None:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        raise RemoteError("forbidden")

    with pytest.raises(RemoteError, match="forbidden"):
        retrying(call, Retry(sleep=lambda _: None))
    assert calls == 1


def test_an_error_stops_new_jobs_but_what_is_under_way_finishes() -> None:
    started: list[int] = []
    done: list[int] = []
    both = threading.Barrier(2)

    def worker(job: int) -> None:
        started.append(job)
        if job < 2:
            both.wait()
        if job == 0:
            raise RemoteError("no permission")
        time.sleep(0.05)

    with pytest.raises(RemoteError, match="no permission"):
        run(range(100), worker, workers=2, on_done=lambda job, _: done.append(job))
    assert 1 in done
    assert len(started) <= 3
    assert sorted([0, *done]) == sorted(started)


def test_a_failure_that_can_be_lived_with() -> None:
    done: list[int] = []
    failed: list[int] = []

    def worker(job: int) -> None:
        if job % 3 == 0:
            raise RemoteError(str(job))

    run(
        range(10),
        worker,
        workers=2,
        on_done=lambda job, _: done.append(job),
        on_failed=lambda job, error: failed.append(job),
    )
    assert sorted(failed) == [0, 3, 6, 9]
    assert sorted(done) == [1, 2, 4, 5, 7, 8]


def test_on_failed_may_raise() -> None:
    def failed(job: int, error: Exception) -> None:
        raise error

    def worker(job: int) -> None:
        raise RemoteError(f"job {job}")

    with pytest.raises(RemoteError, match="job 0"):
        run([0], worker, workers=1, on_done=lambda *_: None, on_failed=failed)


def test_a_result_that_cannot_be_kept_ends_it() -> None:
    kept: list[int] = []

    def done(job: int, result: int) -> None:
        kept.append(job)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run(range(100), lambda job: job, workers=2, on_done=done)
    assert len(kept) == 1


def test_jobs_that_cannot_be_made_end_it() -> None:
    def jobs() -> Iterator[int]:
        yield 1
        raise ValueError("corrupt")

    with pytest.raises(ValueError, match="corrupt"):
        run(jobs(), lambda job: job, workers=2, on_done=lambda *_: None)


def test_fewer_requests_after_a_failure() -> None:
    lock = threading.Lock()
    under_way = 0
    most_later = 0
    failures = iter([True] * 8)

    def worker(job: int) -> None:
        nonlocal under_way, most_later
        with lock:
            under_way += 1
            if job >= 8:
                most_later = max(most_later, under_way)
            fails = job < 8 and next(failures, False)
        time.sleep(0.002)
        with lock:
            under_way -= 1
        if fails:
            raise TransientRemoteError("slow down")

    run(range(12), worker, workers=8, on_done=lambda *_: None, retry=Retry(sleep=lambda _: time.sleep(0.01)))
    assert 0 < most_later < 8


def test_the_end_of_a_run_cuts_delays_short() -> None:
    both = threading.Barrier(2, timeout=10)
    waiting = threading.Event()

    def worker(job: int) -> None:
        if not waiting.is_set():
            both.wait()
        if job == 0:
            waiting.set()
            raise TransientRemoteError("later")
        waiting.wait()
        raise RemoteError("for good")

    begin = time.monotonic()
    with pytest.raises(RemoteError, match="for good"):
        run([0, 1], worker, workers=2, on_done=lambda *_: None, retry=Retry(base=60, longest=60))
    assert time.monotonic() - begin < 10


def test_the_meter_never_passes_its_totals(watcher: Any) -> None:
    with Meter(watcher, "Sending", 100, 3) as meter:
        meter.advance(60, 1)
        meter.advance(60, 1)
        meter.advance(1, 5)
        assert watcher.sums == [100, 3]
        meter.complete()
    assert watcher.totals == [("Sending", 100, 3)]
    assert watcher.sums == [100, 3]
    assert watcher.ended == 1


def test_the_meter_completes_and_ends_after_an_error(watcher: Any) -> None:
    with pytest.raises(ValueError, match="x"), Meter(watcher, "Sending", 100, 3):
        raise ValueError("x")
    assert watcher.ended == 1


def test_a_server_that_asks_for_fewer_requests_gets_fewer_and_patience() -> None:
    """Thirty refusals in a row: what is tried again runs alone, then the others come back."""
    lock = threading.Lock()
    refusals, active, most_late, most_after = 30, 0, 0, 0

    def worker(job: int) -> None:
        nonlocal refusals, active, most_late, most_after
        with lock:
            active += 1
            refused = refusals > 0
            refusals -= 1
            if -1 <= refusals < 15:
                most_late = max(most_late, active)
            elif refusals < -20:
                most_after = max(most_after, active)
        time.sleep(0.002)
        with lock:
            active -= 1
        if refused:
            raise SlowDownError("slow down")

    done: list[int] = []
    slept: list[float] = []
    retry = Retry(attempts=3, random=lambda: 1.0, sleep=slept.append)
    run(range(100), worker, workers=8, on_done=lambda job, _: done.append(job), retry=retry)
    assert sorted(done) == list(range(100))
    assert most_late == 1
    assert most_after > 4
    assert min(slept) < max(slept) <= 1.0

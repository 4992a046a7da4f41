"""Running requests side by side, trying again those that may go through later, and telling how far it got.

`run` takes its jobs from an iterator one by one, when there is room for another, so that a job that holds a
file or much memory exists only while it is needed. Whatever fails for a moment (TransientRemoteError) is
tried again after a growing, random delay, with fewer requests under way until things go well again. A server
that asks for fewer requests (SlowDownError) is well, so it is given more attempts, and more patience. The first
error that stays ends the run, unless the caller can live with it: no new job starts, those under way finish
and are reported, then the error is raised.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, final

from gds_lfs.errors import TransientRemoteError
from gds_lfs.remote.base import SlowDownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

__all__ = ["DEFAULT_RETRY", "Meter", "Progress", "Retry", "Silent", "Throttle", "retrying", "run"]

_WAITING = 2
"""Jobs that wait for room, so that no worker waits for the thread that takes the results."""

J = TypeVar("J")
R = TypeVar("R")


class Progress(Protocol):
    """Who wants to know how far a transfer is. Called from one thread at a time."""

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        """A piece of work begins; `what` is a word or two for the user."""

    def advance(self, size: int, items: int) -> None:
        """So much more of it is done for good; the sum never passes the totals."""

    def done(self) -> None:
        """It ended, well or not."""


class Silent:
    """Progress that nobody watches."""

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        """Nothing to tell."""

    def advance(self, size: int, items: int) -> None:
        """Nothing to tell."""

    def done(self) -> None:
        """Nothing to tell."""


@final
class Meter:
    """Progress within its totals, whatever is counted twice: work that had to be done again, for one."""

    def __init__(self, progress: Progress, what: str, total_bytes: int, total_items: int) -> None:
        self._progress = progress
        self._left = [total_bytes, total_items]
        progress.start(what, total_bytes, total_items)

    def advance(self, size: int, items: int) -> None:
        """So much more is done."""
        size, items = min(size, self._left[0]), min(items, self._left[1])
        self._left[0] -= size
        self._left[1] -= items
        self._progress.advance(size, items)

    def complete(self) -> None:
        """All of it is done."""
        self.advance(*self._left)

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.done()


@dataclass(frozen=True)
class Retry:
    """How often a request is tried, and after which delay: a random part of base, 2 base, 4 base, ..."""

    attempts: int = 6
    base: float = 0.25
    longest: float = 20.0
    #: The same where the server asks for fewer requests: by then they come one at a time, which is slow enough.
    slow_down_attempts: int = 100
    slow_down_longest: float = 1.0
    random: Callable[[], float] = random.random
    #: Waits for so many seconds; None waits in a way that the end of a run cuts short.
    sleep: Callable[[float], object] | None = None

    def delay(self, failures: int, *, slow_down: bool = False) -> float:
        """Seconds to wait after that many failures in a row: at least half of the growing delay."""
        longest = self.slow_down_longest if slow_down else self.longest
        return min(longest, self.base * 2.0 ** min(failures - 1, 30)) * (0.5 + self.random() / 2)

    def gives_up(self, failures: int, *, slow_down: bool = False) -> bool:
        """Whether that many failures in a row are enough."""
        return failures >= (self.slow_down_attempts if slow_down else self.attempts)


DEFAULT_RETRY = Retry()


def retrying(call: Callable[[], R], retry: Retry) -> R:
    """What `call` returns, tried again as `run` does it."""
    return Throttle(1, retry).perform(call)


class Throttle:
    """How many requests may be under way, at most `workers`: fewer while a server has trouble. Safe to use from several
    threads.
    """

    def __init__(self, workers: int, retry: Retry) -> None:
        self.workers = workers
        self.retry = retry
        self.room = workers
        self.active = 0
        self.changed = threading.Condition()
        self.ending = threading.Event()

    def perform(self, call: Callable[[], R]) -> R:
        """What `call` returns, when there is room for it and after its retries. Raises what it raises in the end."""
        sleep = self.retry.sleep or self.ending.wait
        failures = 0
        while True:
            self._enter()
            try:
                result = call()
            except TransientRemoteError as error:
                failures += 1
                self._leave(lambda room: max(1, room // 2))
                slow_down = isinstance(error, SlowDownError)
                if self.retry.gives_up(failures, slow_down=slow_down):
                    raise
                sleep(self.retry.delay(failures, slow_down=slow_down))
                if self.ending.is_set():
                    raise
            except BaseException:
                self._leave(lambda room: room)
                raise
            else:
                self._leave(lambda room: min(self.workers, room + 1))
                return result

    def _enter(self) -> None:
        """Wait until there is room for one more request: those that are tried again count like new ones."""
        with self.changed:
            self.changed.wait_for(lambda: self.active < self.room)
            self.active += 1

    def _leave(self, adapted: Callable[[int], int]) -> None:
        with self.changed:
            self.active -= 1
            self.room = adapted(self.room)
            self.changed.notify_all()


def run(
    jobs: Iterable[J],
    worker: Callable[[J], R],
    *,
    workers: int,
    on_done: Callable[[J, R], None],
    on_failed: Callable[[J, Exception], None] | None = None,
    retry: Retry = DEFAULT_RETRY,
) -> None:
    """Give every job to `worker`, at most `workers` at once; hand results to `on_done` in this thread.

    A job that failed for good goes to `on_failed`, which raises where the run cannot go on; without it, no
    run can. Raises the first error of a callback or of `jobs`, after the jobs that were under way have
    ended.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # not paid by a push with nothing new

    state = Throttle(workers, retry)
    executor = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="transfer")
    pending: dict[Future[R], J] = {}

    def collect(count: int) -> None:
        for future in _next_done(pending, count):
            job = pending.pop(future)
            error = future.exception()
            if error is None:
                on_done(job, future.result())
            else:
                _give_up(job, error, on_failed)

    try:
        for job in jobs:
            pending[executor.submit(state.perform, partial(worker, job))] = job
            while len(pending) >= state.room + _WAITING:
                collect(1)
        collect(len(pending))
    except _JobError as failed:
        state.ending.set()
        for future in wait([future for future in pending if not future.cancel()]).done:
            if future.exception() is None:
                on_done(pending[future], future.result())
        raise failed.error from failed.error.__cause__
    finally:
        state.ending.set()
        executor.shutdown(wait=True, cancel_futures=True)


class _JobError(Exception):
    """A job failed and the run cannot go on."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def _give_up(job: J, error: BaseException, on_failed: Callable[[J, Exception], None] | None) -> None:
    if on_failed is None or not isinstance(error, Exception):
        raise _JobError(error)
    try:
        on_failed(job, error)
    except Exception as final:
        raise _JobError(final) from final


def _next_done(pending: dict[Future[R], J], count: int) -> Iterator[Future[R]]:
    """At least `count` jobs that have ended; the caller takes each out of `pending`."""
    from concurrent.futures import FIRST_COMPLETED, wait

    while count > 0:
        done = wait(pending, return_when=FIRST_COMPLETED).done
        count -= len(done)
        yield from done

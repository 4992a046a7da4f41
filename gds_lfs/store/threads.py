"""Work that other threads do, with its results in order and only a few of them ahead of who asks for them."""

from __future__ import annotations

import os
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 4
"""Tasks that may wait for a thread: bounds the memory to a few frames."""


class Threads:
    """Executors, made when first asked for: most commands store one small file."""

    @cached_property
    def hasher(self) -> Executor:
        """One thread, so that what is submitted happens in order."""
        return _executor(1)

    @cached_property
    def cutter(self) -> Executor:
        """One thread, which reads a large content and cuts it."""
        return _executor(1)

    @cached_property
    def sealer(self) -> Executor:
        """One thread, for what waits on the disk."""
        return _executor(1)

    @cached_property
    def pool(self) -> Executor:
        """As many threads as there are processors."""
        return _executor(os.cpu_count() or 1)

    def shutdown(self) -> None:
        """Wait for what is under way."""
        for executor in vars(self).values():
            executor.shutdown()
        vars(self).clear()


def ahead(executor: Executor, items: Iterator[T], count: int) -> Generator[T, None, None]:
    """The items, each made by the executor's one thread, up to `count` of them before they are asked for.

    Closing it waits for the one that is being made, so that nobody reads behind the caller's back.
    """
    tasks: deque[Future[T | None]] = deque()
    try:
        while True:
            while len(tasks) < count:
                tasks.append(executor.submit(next, items, None))
            item = tasks.popleft().result()
            if item is None:
                return
            yield item
    finally:
        for task in tasks:
            if not task.cancel():
                task.exception()


def ordered(jobs: Iterable[T], worker: Callable[[T], R]) -> Iterator[R]:
    """The jobs' results in the jobs' order, a few computed ahead on the processor's other cores."""
    tasks: deque[Future[R]] = deque()
    with _executor(min(AHEAD, os.cpu_count() or 1)) as executor:
        try:
            for job in jobs:
                tasks.append(executor.submit(worker, job))
                if len(tasks) > AHEAD:
                    yield tasks.popleft().result()
            while tasks:
                yield tasks.popleft().result()
        finally:
            executor.shutdown(cancel_futures=True)


def bundles(items: Iterable[T], size_of: Callable[[T], int], size: int) -> Iterator[list[T]]:
    """The items in lists of about `size` bytes: a thread is not worth handing less."""
    bundle: list[T] = []
    total = 0
    for item in items:
        bundle.append(item)
        total += size_of(item)
        if total >= size:
            yield bundle
            bundle, total = [], 0
    if bundle:
        yield bundle


def _executor(threads: int) -> Executor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads)

"""Work that is done in a process of its own, while this one does something else.

A thread of the same process would not do: before its first request an S3 remote imports for more than a tenth of a
second, and two threads that run Python take as long as one after the other. So git's objects are listed by a copy of
this process meanwhile, where the system can fork one that is sound: on Linux, before there are other threads.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["beside"]

T = TypeVar("T")


@contextmanager
def beside(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Begin `work`, which gives what marshal takes; calling what this gives waits for its result.

    Where it cannot be done beside, or fails there, that call does it, and raises what it raises.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        yield work
        return
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)  # or it would wait for ever to tell a process that was killed
        _answer(writer, work)
    os.close(writer)
    try:
        with open(reader, "rb") as answer:
            yield lambda: _result(answer.read(), work)
    finally:
        os.kill(child, signal.SIGKILL)  # it has answered, or nobody will ask it
        os.waitpid(child, 0)


def _answer(writer: int, work: Callable[[], Any]) -> NoReturn:
    """The copy's whole life: it must not run into what this process does at its end."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of an interrupt the other one tells
    try:
        data = marshal.dumps(work())
        with open(writer, "wb") as answer:
            answer.write(data)
    finally:
        os._exit(0)


def _result(data: bytes, work: Callable[[], T]) -> T:
    try:
        result: T = marshal.loads(data)
    except (EOFError, ValueError, TypeError):
        return work()
    return result

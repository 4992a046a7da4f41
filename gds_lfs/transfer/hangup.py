"""Noticing that git-lfs has gone while its agent is busy.

Who only reads between two pieces of work learns of the end of a stream when the work is done, which a server that has
stalled can put off for minutes. So a thread looks now and then whether anybody is left to hear an answer; it costs the
work nothing.
"""

from __future__ import annotations

import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Watch", "has_hung_up"]

#: Seconds between two looks.
EVERY = 0.25
#: So many looks in a row must find everybody gone: one may fall into the moment in which a stream's end is dealt with.
SURE = 2


class Watch:
    """A context manager: while it lasts, `deserted` is called once, in a thread, if `nobody` stays true."""

    def __init__(self, nobody: Callable[[], bool], deserted: Callable[[], None]) -> None:
        self._nobody = nobody
        self._deserted = deserted
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="hangup", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _look(self) -> None:
        times = 0
        while times < SURE:
            if self._over.wait(EVERY):
                return
            times = times + 1 if self._nobody() else 0
        self._deserted()


def has_hung_up(stdin: int, stdout: int, *, unanswered: bool) -> bool:
    """Whether the other side of two pipes has gone: it neither reads answers, nor can it ask anything more.

    One that has closed what it writes to may be a script whose answers go to a file. It is waited for as long as there
    is something `unanswered` or unread that it has said after what is being answered: a `terminate`, at least.
    """
    poll = select.poll()
    poll.register(stdin, select.POLLIN)
    poll.register(stdout, 0)
    found = dict(poll.poll(0))
    asks = found.get(stdin, 0)
    if not asks & select.POLLHUP:
        return False
    hears = not found.get(stdout, 0) & (select.POLLERR | select.POLLHUP)
    return not (hears and (unanswered or asks & select.POLLIN))

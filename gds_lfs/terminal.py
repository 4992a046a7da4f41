"""Progress on a terminal. A pipe, a file and a quick task see nothing of it."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

PATIENCE = 0.5
"""Seconds that a task may take before a bar is worth drawing (and its library worth importing)."""

RATE_AFTER = 1.0
"""Seconds of a task after which its rate means something: bytes are told of by the pack, or by the large piece."""

BAR_WIDTH, LEAST_BAR_WIDTH = 40, 10

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class TerminalProgress:
    """One bar on stderr, drawn once a task has taken `PATIENCE` seconds, wherever it is by then; gone when done."""

    def __init__(self) -> None:
        self._drawing = threading.RLock()  # an interrupt may find this thread drawing
        self._timer: threading.Timer | None = None
        self._bar: Any = None
        self._running = False
        self._what = ""
        self._totals = (0, 0)
        self._began = 0.0
        self._bytes = 0
        self._items = 0

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        """Begin a task with its totals."""
        self.done()
        self._what, self._totals = what, (total_bytes, total_items)
        self._bytes = self._items = 0
        self._began = time.monotonic()
        self._running = True
        self._timer = threading.Timer(PATIENCE, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, size: int, items: int) -> None:
        """So many more bytes and items are done."""
        with self._drawing:
            self._bytes += size
            self._items += items
            if self._bar is not None:
                self._update()

    def done(self) -> None:
        """The task has ended, or its line is needed: nothing is drawn until the next one starts."""
        if self._timer is not None:
            self._timer.cancel()
        with self._drawing:
            self._running = False
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _update(self) -> None:
        self._bar.update(0, completed=self._bytes if self._totals[0] else self._items, counted=self._counted())

    def _counted(self) -> str:
        """What is done so far, as wide at the end as at the beginning."""
        total_bytes, total_items = self._totals
        if not total_items:  # rows, of which nobody knows how many there are to be
            return f"{self._items:>9,} rows"
        items = f"{self._items:>{len(f'{total_items:,}')},}/{total_items:,}"
        if not total_bytes:
            return f"{items} rows"
        rate = _rate(self._bytes, time.monotonic() - self._began)
        return f"{items} files  {_part(self._bytes, total_bytes)}  {rate}"

    def _draw(self) -> None:
        import rich.progress  # noqa: F401  # which takes a moment, in which nobody has to wait for the lock

        with self._drawing:
            if self._running and self._bar is None:
                self._bar = self._new_bar()
                self._update()
                self._bar.start()

    def _new_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        counted = self._counted()
        console = Console(file=sys.stderr, force_terminal=True)
        room = console.width - len(f"{self._what}  {counted}")
        width = max(LEAST_BAR_WIDTH, min(BAR_WIDTH, room))
        columns = (TextColumn("{task.description}"), BarColumn(width), TextColumn("{task.fields[counted]}"))
        bar = Progress(*columns, console=console, transient=True)
        total_bytes, total_items = self._totals
        bar.add_task(self._what, total=total_bytes or total_items or None, counted=counted)
        return bar


def _unit(size: float) -> tuple[int, int, str]:
    """The unit that a size is read in: how many bytes it is, how many decimals it takes, its name."""
    power = min(max(int(size).bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return 1024**power, min(power, 1), _UNITS[power]


def _part(done: int, total: int) -> str:
    """`  3.4/512.0 MiB`: one unit for both, and one width for all there is to come."""
    divisor, decimals, name = _unit(total)
    whole = f"{total / divisor:.{decimals}f}"
    return f"{done / divisor:>{len(whole)}.{decimals}f}/{whole} {name}"


def _rate(done: int, seconds: float) -> str:
    """`   3.4 MiB/s`, and as many spaces while it would mean nothing."""
    text = ""
    if done and seconds >= RATE_AFTER:
        divisor, decimals, name = _unit(done / seconds)
        text = f"{done / seconds / divisor:.{decimals}f} {name}/s"
    return f"{text:>12}"

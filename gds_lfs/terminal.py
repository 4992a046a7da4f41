"""Progress on a terminal. A pipe, a file and a quick task see nothing of it."""

from __future__ import annotations

import sys
import threading
from typing import Any

PATIENCE = 0.5
"""Seconds that a task may take before a bar is worth drawing (and its library worth importing)."""


class TerminalProgress:
    """One bar on stderr, drawn once a task has taken `PATIENCE` seconds, wherever it is by then; gone when done."""

    def __init__(self) -> None:
        self._drawing = threading.RLock()  # an interrupt may find this thread drawing
        self._timer: threading.Timer | None = None
        self._bar: Any = None
        self._running = False
        self._what = ""
        self._totals = (0, 0)
        self._bytes = 0
        self._items = 0

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        """Begin a task with its totals."""
        self.done()
        self._what, self._totals = what, (total_bytes, total_items)
        self._bytes = self._items = 0
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
        self._bar.update(0, completed=self._bytes if self._totals[0] else self._items, items=self._items)

    def _draw(self) -> None:
        import rich.progress  # noqa: F401  # which takes a moment, in which nobody has to wait for the lock

        with self._drawing:
            if self._running and self._bar is None:
                self._bar = self._new_bar()
                self._update()
                self._bar.start()

    def _new_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TransferSpeedColumn,
        )

        total_bytes, total_items = self._totals
        columns: tuple[ProgressColumn, ...]
        if total_bytes:
            counted = TextColumn(f"{{task.fields[items]:,}}/{total_items:,} files")
            columns = (BarColumn(), counted, DownloadColumn(binary_units=True), TransferSpeedColumn())
        else:  # rows, of which there are so many, or nobody knows how many
            rows = f"/{total_items:,} rows" if total_items else " rows"
            columns = (BarColumn(), TextColumn(f"{{task.fields[items]:,}}{rows}"))
        console = Console(file=sys.stderr, force_terminal=True)
        bar = Progress(TextColumn("{task.description}"), *columns, console=console, transient=True)
        bar.add_task(self._what, total=total_bytes or total_items or None, items=self._items)
        return bar

"""Progress on a terminal. A pipe, a file and a quick task see nothing of it."""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE = 0.5
"""Seconds that a task may take before a bar is worth drawing (and its library worth importing)."""


class TerminalProgress:
    """One bar on stderr, drawn once a task has taken `PATIENCE` seconds, gone when it is done."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._running = False
        self._started = 0.0
        self._what = ""
        self._totals = (0, 0)
        self._bytes = 0
        self._items = 0

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        """Begin a task with its totals."""
        self.done()
        self._what, self._totals = what, (total_bytes, total_items)
        self._bytes = self._items = 0
        self._started = time.monotonic()
        self._running = True

    def advance(self, size: int, items: int) -> None:
        """So many more bytes and items are done."""
        if not self._running:
            return
        self._bytes += size
        self._items += items
        if self._bar is None:
            if time.monotonic() - self._started < PATIENCE:
                return
            self._draw()
        done = self._bytes if self._totals[0] else self._items
        self._bar.update(0, completed=done, items=self._items)

    def done(self) -> None:
        """The task has ended, or its line is needed: nothing is drawn until the next one starts."""
        self._running = False
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _draw(self) -> None:
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
        self._bar = Progress(TextColumn("{task.description}"), *columns, console=console, transient=True)
        self._bar.add_task(self._what, total=total_bytes or total_items or None, items=self._items)
        self._bar.start()

"""What the commands say: results on stdout, everything else on stderr.

git reads the stdout of filters and hooks, and scripts read the stdout of commands, so nothing but results ever
goes there. Progress is drawn by the implementation that cli.py hands in; a pipe sees none of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gds_lfs.transfer.queue import Progress, Silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Messages:
    """Where a command's words go. `quiet` keeps warnings and errors only, `verbose` adds details."""

    def __init__(self, progress: Progress | None = None, *, quiet: bool = False, verbose: bool = False) -> None:
        self.progress: Progress = progress or Silent()
        self.quiet = quiet
        self.verbose = verbose

    def result(self, text: str) -> None:
        """One line of a command's result, on stdout. Names that are no valid text keep their bytes."""
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
        sys.stdout.buffer.flush()

    def result_bytes(self, data: bytes) -> None:
        """Raw bytes of a result (`-z`), on stdout."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def result_paths(self, headline: str, paths: Iterable[str], limit: int = 10) -> None:
        """A headline and the first `limit` names, or with `verbose` all of them; nothing where there are none."""
        names = list(paths)
        if names:
            shown = _indented(names, len(names) if self.verbose else limit, " (-v names all)")
            self.result("\n".join([headline, *shown]))

    def note(self, text: str) -> None:
        """One line for the person at the terminal, on stderr."""
        if not self.quiet:
            self._say(text)

    def detail(self, text: str) -> None:
        """One line for someone who asked for more."""
        if self.verbose:
            self._say(text)

    def warn(self, text: str) -> None:
        self._say(f"warning: {text}")

    def error(self, text: str) -> None:
        self._say(f"error: {text}")

    def warn_paths(self, headline: str, paths: Iterable[str], advice: str, limit: int = 10) -> None:
        """One warning for many files: a headline, the first `limit` names, what to do."""
        self._say("\n".join([f"warning: {headline}", *_indented(list(paths), limit), advice]))

    @staticmethod
    def _say(text: str) -> None:
        data = f"git datasets: {text}\n".encode("utf-8", "surrogateescape")
        sys.stderr.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()


def _indented(names: Sequence[str], limit: int, way_out: str = "") -> list[str]:
    """The first of the names, a line each, and how many more there are."""
    lines = [f"  {name}" for name in names[:limit]]
    return [*lines, f"  … and {len(names) - limit:,} more{way_out}"] if len(names) > limit else lines


def count(number: int, noun: str) -> str:
    """`1 file`, `3,700 files`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeo" else f"{number:,} {noun}s"


def human_bytes(number: float) -> str:
    """A size as people read it, in binary units: `17 B`, `3.4 MiB`."""
    if number < 1024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1024
        if number < 1024:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:.1f} TiB"

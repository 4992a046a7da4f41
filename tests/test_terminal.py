"""Progress as a terminal gets it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from gds_lfs import terminal

pty = pytest.importorskip("pty", reason="Windows has none")

BEGINNING = """
import time
from gds_lfs import terminal
terminal.PATIENCE = 0.2
progress = terminal.TerminalProgress()
"""


def seen(program: str) -> str:
    """What a terminal is sent by a program that has a `progress`."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", BEGINNING + program]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as run:
        os.close(theirs)
        sent = b""
        try:
            while piece := os.read(ours, 4096):
                sent += piece
        except OSError:  # Linux's way to say that nobody has it open any more
            pass
        finally:
            os.close(ours)
    assert run.returncode == 0
    return sent.decode()


def test_a_task_that_gets_nowhere_has_a_bar() -> None:
    sent = seen("""
progress.start("Uploading", 1000, 10)
time.sleep(1.5)
progress.advance(500, 4)
time.sleep(0.5)
progress.done()
progress.advance(500, 6)
""")
    assert "Uploading" in sent
    assert 0 < sent.index("0/10 files") < sent.index("4/10 files")
    assert "10/10" not in sent


def test_the_bar_keeps_its_width_and_tells_a_rate_that_means_something() -> None:
    sent = seen("""
import os
os.environ["COLUMNS"] = "80"
progress.start("Checking out", 100 * 2**20, 1000)
progress.advance(9 * 2**20, 9)
time.sleep(0.9)
terminal.RATE_AFTER = 0
for _ in range(9):
    progress.advance(10 * 2**20, 100)
    time.sleep(0.2)
progress.done()
""")
    lines = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent).split("\r") if "files" in line]
    assert {len(line.rstrip("\n")) for line in lines} == {len(lines[0].rstrip("\n"))}
    assert re.search(r"    9/1,000 files    9\.0/100\.0 MiB +$", lines[0].rstrip("\n"))
    assert re.search(r"  909/1,000 files   99\.0/100\.0 MiB +[\d.]+ MiB/s$", lines[-1].rstrip("\n"))


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (0, 900, "  0/900 B"),
        (512, 2048, "0.5/2.0 KiB"),
        (2**20, 512 * 2**20, "  1.0/512.0 MiB"),
        (0, 2**50, "   0.0/1024.0 TiB"),
    ],
)
def test_a_part_is_as_wide_as_the_whole(done: int, total: int, text: str) -> None:
    assert terminal._part(done, total) == text
    assert len(terminal._part(total, total)) == len(text)


@pytest.mark.parametrize(
    ("done", "seconds", "text"),
    [
        (0, 10.0, ""),
        (10**9, 0.1, ""),
        (900, 1.0, "900 B/s"),
        (5 * 2**20, 2.0, "2.5 MiB/s"),
        (2**30 - 10**5, 1.0, "1023.9 MiB/s"),
        (3 * 2**30, 1.0, "3.0 GiB/s"),
    ],
)
def test_a_rate_is_in_the_units_of_the_sizes(done: int, seconds: float, text: str) -> None:
    assert terminal._rate(done, seconds) == text.rjust(12)


def test_a_quick_task_has_none() -> None:
    sent = seen("""
for what in ("one", "two"):
    progress.start(what, 1000, 10)
    progress.advance(1000, 10)
    progress.done()
time.sleep(0.5)
""")
    assert sent == ""


def test_the_bar_is_the_latest_tasks() -> None:
    sent = seen("""
progress.start("first", 0, 3)
progress.start("second", 0, 4)
time.sleep(1.5)
progress.done()
""")
    assert "first" not in sent
    assert "0/4 rows" in sent

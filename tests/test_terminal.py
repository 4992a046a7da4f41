"""Progress as a terminal gets it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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

from __future__ import annotations

import json
import os

import pytest

from gds_lfs.transfer.greeting import Greeting, greet

INIT = {"event": "init", "operation": "upload", "remote": "origin", "concurrent": True, "concurrenttransfers": 5}


def told(said: bytes) -> tuple[Greeting, bytes, bytes]:
    """The greeting of an agent to which this is said, its answer, and what it has not read."""
    stdin, say = os.pipe()
    hear, stdout = os.pipe()
    os.write(say, said)
    os.close(say)
    greeting = greet(stdin, stdout)
    os.close(stdout)
    with os.fdopen(hear, "rb") as answers, os.fdopen(stdin, "rb") as rest:
        return greeting, answers.read(), rest.read()


@pytest.mark.parametrize("operation", ["upload", "download"])
def test_the_usual_init_is_answered_at_once(operation: str) -> None:
    line = json.dumps({**INIT, "operation": operation}, separators=(",", ":")).encode() + b"\n"
    assert told(line + b'{"event":"up') == (Greeting(line, answered=True), b"{}\n", b'{"event":"up')


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(INIT).encode() + b"\n",  # in words that nobody expects, but it may well be one
        b'{"event":"init","operation":"sideload"}\n',
        b'{"event":"init"\n',
        b'{"event":"init","operation":"upload"\n',  # cut short
        b'{"event":"init","operation":"upload"}',
        b'x{"event":"init","operation":"upload"}\n',
        b'{"event":"terminate"}\n',
        b'{"event":"upl',
        b"\n",
        b"",
    ],
)
def test_everything_else_is_left_to_who_reads_messages(line: bytes) -> None:
    assert told(line) == (Greeting(line), b"", b"")

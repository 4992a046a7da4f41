"""The first words between git-lfs and an agent, before anything is loaded.

git-lfs starts its agents one after another, each when the one before has answered `init`: what an agent loads before
that is waited for once an agent. So the usual `init` is known by its looks, and answered with what costs nothing to
import; any other first line is left to who reads messages (lfs_messages.py).
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["Greeting", "greet"]

_INIT = b'"event":"init"'
_OPERATIONS = (b'"operation":"upload"', b'"operation":"download"')
_ENDS = (b"}\n", b"}\r\n")


class Greeting(NamedTuple):
    """The first line of a conversation, and whether it is answered already."""

    line: bytes
    answered: bool = False


def greet(stdin: int, stdout: int) -> Greeting:
    """Read one line, no byte more, and answer it if it is an `init` like any other."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(stdin, 1)):
        line += byte
    first = bytes(line)
    whole = first.startswith(b"{") and first.endswith(_ENDS)
    usual = whole and _INIT in first and any(operation in first for operation in _OPERATIONS)
    if usual:
        os.write(stdout, b"{}\n")
    return Greeting(first, usual)

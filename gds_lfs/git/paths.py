"""Paths as git writes them.

Inside the package a path is what git stores: bytes, '/'-separated, relative to the top of the work tree; it
need not be valid text. Text forms are made at the edges only: `quote` for messages, `c_quote` and `c_unquote`
for files in which git expects C-style quotes.
"""

from __future__ import annotations

import os
import re

_ESCAPES = {
    0x07: b"\\a",
    0x08: b"\\b",
    0x09: b"\\t",
    0x0A: b"\\n",
    0x0B: b"\\v",
    0x0C: b"\\f",
    0x0D: b"\\r",
    0x22: b'\\"',
    0x5C: b"\\\\",
}
_UNESCAPES = {escape[1:]: bytes([byte]) for byte, escape in _ESCAPES.items()}
_UNUSUAL = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_CONTROL = re.compile(rb'[\x00-\x1f"\\\x7f]')
_QUOTED = re.compile(rb'"((?:[^"\\]|\\[abtnvfr"\\]|\\[0-3][0-7]{2})*)"')
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-3][0-7]{2})')


def quote(path: bytes) -> str:
    """The path as git prints it by default: unchanged, or between double quotes with escapes when it is unusual."""
    if not _UNUSUAL.search(path):
        return path.decode("ascii")
    return '"' + _UNUSUAL.sub(_escape, path).decode("ascii") + '"'


def c_quote(text: bytes) -> bytes:
    """`text` between double quotes, control characters, quotes and backslashes escaped, other bytes as they are."""
    return b'"' + _CONTROL.sub(_escape, text) + b'"'


def c_unquote(text: bytes) -> tuple[bytes, bytes] | None:
    """Split `"quoted"rest` into what the quotes hold and the rest; None when `text` does not start that
    way.
    """
    match = _QUOTED.match(text)
    if match is None:
        return None
    return _ESCAPED.sub(_unescape, match[1]), text[match.end() :]


def to_git(path: str) -> bytes:
    """A relative path of this system as a git path."""
    raw = os.fsencode(path)
    return raw.replace(os.sep.encode(), b"/") if os.sep != "/" else raw


def _escape(match: re.Match[bytes]) -> bytes:
    byte = match[0][0]
    return _ESCAPES.get(byte) or b"\\%03o" % byte


def _unescape(match: re.Match[bytes]) -> bytes:
    known = _UNESCAPES.get(match[1])
    return known if known is not None else bytes([int(match[1], 8)])

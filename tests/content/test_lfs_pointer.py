from __future__ import annotations

import pytest

from gds_lfs.content import lfs_pointer
from gds_lfs.content.hashing import oid_of
from gds_lfs.content.pointer import Pointer

HELLO = Pointer(oid_of(b"hello\n"), 6)
TEXT = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03\n"
    b"size 6\n"
)


def test_what_git_lfs_writes() -> None:
    assert lfs_pointer.encode(HELLO) == TEXT
    assert lfs_pointer.recognise(TEXT) == HELLO


@pytest.mark.parametrize(
    "text",
    [TEXT.replace(b"\n", b"\r\n"), TEXT.rstrip(b"\n"), TEXT.replace(b"git-lfs.github", b"hawser.github")],
)
def test_what_git_lfs_reads(text: bytes) -> None:
    assert lfs_pointer.recognise(text) == HELLO


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version git-datasets/1\n" + TEXT.split(b"\n", 1)[1],
        TEXT.replace(b"spec/v1\n", b"spec/v1\next-0-foo sha256:" + b"0" * 64 + b"\n"),
        TEXT.replace(b"size 6", b"size 06"),
        TEXT.replace(b"size 6", b"size 0"),
        TEXT + b"more\n",
        TEXT.upper(),
    ],
)
def test_what_is_none_or_cannot_be_converted(text: bytes) -> None:
    assert lfs_pointer.recognise(text) is None

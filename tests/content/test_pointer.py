from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.content.hashing import EMPTY, oid_of
from gds_lfs.content.pointer import MAX_SIZE, MalformedPointer, Pointer, decode, has_conflict, held_by, recognise

HELLO = bytes.fromhex("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
TEXT = b"version git-datasets/1\noid sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\nsize 5\n"


def test_the_bytes_of_a_pointer():
    assert Pointer(HELLO, 5).encode() == TEXT
    assert decode(TEXT) == Pointer(HELLO, 5)


@given(st.binary(min_size=1), st.integers(1, 2**63 - 1))
def test_what_is_encoded_decodes(content, size):
    pointer = Pointer(oid_of(content), size)
    assert decode(pointer.encode()) == recognise(pointer.encode()) == pointer
    assert len(pointer.encode()) <= MAX_SIZE


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 255))
def test_any_changed_byte_is_another_pointer_or_none(at, byte):
    changed = TEXT[:at] + bytes([byte]) + TEXT[at + 1 :]
    with suppress(MalformedPointer):
        assert decode(changed).encode() == changed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        TEXT[:-1],
        TEXT + b"\n",
        TEXT + b"junk 1\n",
        b"\n" + TEXT,
        b"\xef\xbb\xbf" + TEXT,
        TEXT.replace(b"size 5", b"size 05"),
        TEXT.replace(b"size 5", b"size +5"),
        TEXT.replace(b"size 5", b"size -5"),
        TEXT.replace(b"size 5", b"size  5"),
        TEXT.replace(b"size 5", b"size 5 "),
        TEXT.replace(b"size 5", b"size 9223372036854775808"),
        TEXT.replace(b"size 5", b"size 99999999999999999999"),
        TEXT.replace(b"size 5", b"size 0"),
        TEXT.replace(b"sha256", b"sha512"),
        TEXT.replace(b"2cf24", b"2CF24"),
        TEXT.replace(b"2cf24", b"2cf2"),
        TEXT.replace(b"/1\n", b"/2\n"),
        TEXT.replace(b"\n", b"\r\n"),
        b"version https://git-lfs.github.com/spec/v1\n" + TEXT.split(b"\n", 1)[1],
    ],
)
def test_anything_else_is_refused(data):
    with pytest.raises(MalformedPointer):
        decode(data)


def test_size_0_and_the_empty_hash_go_together():
    assert decode(Pointer(EMPTY, 0).encode()) == Pointer(EMPTY, 0)
    with pytest.raises(MalformedPointer):
        decode(Pointer(EMPTY, 1).encode())


def test_a_newer_version_is_named():
    with pytest.raises(MalformedPointer, match="version '2'"):
        decode(TEXT.replace(b"/1\n", b"/2\n"))


def test_crlf_is_recognised_and_a_mixture_is_not():
    assert recognise(TEXT.replace(b"\n", b"\r\n")) == Pointer(HELLO, 5)
    assert recognise(TEXT.replace(b"\n", b"\r\n", 1)) is None
    assert recognise(TEXT + b"x") is None
    assert recognise(b"version git-datasets/" + bytes(2 * MAX_SIZE)) is None


def conflict(ours: bytes, theirs: bytes, base: bytes | None = None) -> bytes:
    middle = b"" if base is None else b"||||||| parent of 1234567\n" + base
    return b"<<<<<<< Updated upstream\n" + ours + middle + b"=======\n" + theirs + b">>>>>>> Stashed changes\n"


def test_conflict_markers_in_pointer_text():
    head, tail = TEXT.split(b"\n", 1)
    other = tail.replace(b"2cf", b"3cf")
    assert has_conflict(conflict(TEXT, TEXT))
    assert has_conflict(head + b"\n" + conflict(tail, other))
    assert has_conflict(head + b"\n" + conflict(tail, other, tail))
    assert has_conflict(conflict(TEXT, b"raw text\n"))
    assert has_conflict((head + b"\n" + conflict(tail, other)).replace(b"\n", b"\r\n"))


def test_what_is_no_conflict():
    assert not has_conflict(TEXT)
    assert not has_conflict(conflict(b"a\n", b"b\n"))
    assert not has_conflict(b"text that mentions <<<<<<< and version git-datasets/1\n")
    assert not has_conflict(conflict(TEXT, TEXT) + bytes(100_000))


def test_importing_it_stays_light():
    heavy = "{'sqlite3', 'zstandard', 'pyfastcdc', 'concurrent.futures'}"
    program = f"import sys, gds_lfs.content.pointer; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_a_file_holds(tmp_path):
    pointer = Pointer(oid_of(b"x"), 1)
    file = tmp_path / "f"
    for content, held in (
        (pointer.encode(), pointer),
        (b"", None),
        (b"data" * 1000, None),
        (pointer.encode() + b"\n", None),
    ):
        file.write_bytes(content)
        assert held_by(file) == held
    file.write_bytes(pointer.encode().replace(b"\n", b"\r\n"))
    assert held_by(bytes(file)) == pointer
    with pytest.raises(FileNotFoundError):
        held_by(tmp_path / "absent")

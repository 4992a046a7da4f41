from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.errors import ConfigError
from gds_lfs.git.attributes import ensure, ensure_ignored, exchange, literal, patterns, remove

OURS = b" filter=datasets diff=datasets merge=datasets -text\n"
FOREIGN = b"# a comment\n\n*.txt text eol=lf\n*.bin -diff\n[attr]ds filter=datasets -text\n*.x ds"


def test_a_line_for_each_pattern():
    text = ensure(b"", [b"*.bin", b"image/**", b"*.bin"])
    assert text == b"*.bin" + OURS + b"image/**" + OURS
    assert patterns(text) == [b"*.bin", b"image/**"]


def test_foreign_lines_stay():
    text = ensure(FOREIGN, [b"*.bin"])
    assert text == FOREIGN + b"\n*.bin" + OURS
    assert remove(text, [b"*.bin"]) == FOREIGN + b"\n"
    assert remove(FOREIGN, [b"*.txt", b"*.x", b"ds"]) == FOREIGN


def test_line_ends_and_byte_order_mark_stay():
    text = b"\xef\xbb\xbf*.txt text\r\n"
    added = ensure(text, [b"*.bin"])
    assert added == text + b"*.bin" + OURS.replace(b"\n", b"\r\n")
    assert ensure(added, [b"*.bin", b"*.txt"]).count(b"\r\n") == 3
    assert remove(added, [b"*.bin"]) == text
    marked = b"\xef\xbb\xbf*.bin" + OURS
    assert ensure(marked, [b"*.bin"]) == marked
    assert remove(marked, [b"*.bin"]) == b"\xef\xbb\xbf"


def test_a_line_written_by_hand():
    text = b"*.csv filter=datasets text eol=crlf\r\n*.bin -text merge=datasets diff=datasets filter=datasets extra\n"
    assert ensure(text, [b"*.bin"]) == text
    assert ensure(text, [b"*.csv"]) == text + b"*.csv" + OURS.replace(b"\n", b"\r\n")
    assert remove(text, [b"*.csv", b"*.bin"]) == b"*.csv text eol=crlf\r\n*.bin extra\n"


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (b"a b.bin", b'"a b.bin"'),
        (b"#x", b'"#x"'),
        (b'"x"', rb'"\"x\""'),
        (b"w\\\\x", rb"w\\x"),
        (b"a \\[1\\]", rb'"a \\[1\\]"'),
        (b"tab\t", rb'"tab\t"'),
        (b"folder/", b"folder/**"),
        ("ü b".encode(), '"ü b"'.encode()),
    ],
)
def test_how_patterns_are_written(pattern, written):
    text = ensure(b"", [pattern])
    assert text == written + OURS
    assert ensure(text, [pattern]) == text
    assert remove(text, [pattern]) == b""


@pytest.mark.parametrize("pattern", [b"", b"!x", b"a\0b", b"[attr]x"])
def test_patterns_that_cannot_be(pattern):
    with pytest.raises(ConfigError):
        ensure(b"", [pattern])


@pytest.mark.parametrize(
    ("path", "pattern"),
    [(b"a b[1].bin", rb"/a b\[1].bin"), (b"w\\x", rb"/w\\x"), (b"d/*?", rb"/d/\*\?"), (b"!x", b"/!x")],
)
def test_literal(path, pattern):
    assert literal(path) == pattern


def can_be_a_pattern(name: bytes) -> bool:
    return b"\0" not in name and not name.startswith((b"!", b"[attr]")) and not name.endswith(b"/")


names = st.binary(min_size=1).filter(can_be_a_pattern)


@given(st.lists(names, unique=True))
def test_adding_and_removing_any_patterns(found):
    text = ensure(FOREIGN, found)
    assert set(found) <= set(patterns(text)) or not found
    assert ensure(text, found) == text
    assert remove(text, found).rstrip(b"\n") == FOREIGN


def test_ignore_lines():
    assert ensure_ignored(b"", [b"*-wal", b"*-shm"]) == b"*-wal\n*-shm\n"
    assert ensure_ignored(b"*-wal\r\nx", [b"*-wal", b"*-shm"]) == b"*-wal\r\nx\r\n*-shm\r\n"
    assert ensure_ignored(b"*-wal\n", [b"*-wal"]) == b"*-wal\n"


def test_exchange_touches_the_filter_alone() -> None:
    text = (
        b"# filter=lfs in a comment\r\n"
        b"*.bin filter=lfs diff=lfs merge=lfs -text lockable\r\n"
        b"[attr]big filter=lfs diff=lfs merge=lfs -text\n"
        b'"a filter=lfs b" filter=lfsx diff=foo\n'
        b"*.x\tfilter=lfs"
    )
    changed = exchange(text, "lfs", "datasets")
    assert changed == (
        b"# filter=lfs in a comment\r\n"
        b"*.bin filter=datasets diff=datasets merge=datasets -text lockable\r\n"
        b"[attr]big filter=datasets diff=datasets merge=datasets -text\n"
        b'"a filter=lfs b" filter=lfsx diff=foo\n'
        b"*.x\tfilter=datasets"
    )
    assert exchange(changed, "datasets", "lfs") == text

from __future__ import annotations

import pytest

from gds_lfs.git.cache_tree import invalidate

ONE, TWO, THREE, FOUR = (bytes([number]) * 20 for number in (1, 2, 3, 4))
TREE = b"\x006 2\n" + ONE + b"a\x004 1\n" + TWO + b"b\x002 0\n" + THREE + b"c\x001 0\n" + FOUR


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], TREE),
        ([b"f"], b"\0-1 2\n" + TREE[5 + 20 :]),
        ([b"c/f"], b"\0-1 2\n" + TREE[25:-26] + b"c\0-1 0\n"),
        ([b"a/b/f"], b"\0-1 2\na\0-1 1\nb\0-1 0\n" + b"c\x001 0\n" + FOUR),
        ([b"a/f"], b"\0-1 2\na\0-1 1\n" + b"b\x002 0\n" + THREE + b"c\x001 0\n" + FOUR),
        ([b"b/f"], b"\0-1 2\n" + TREE[25:]),
    ],
)
def test_folders_above_a_change_are_forgotten(paths, expected):
    assert invalidate(TREE, paths, 20) == expected


def test_what_was_forgotten_stays_forgotten():
    once = invalidate(TREE, [b"a/b/f"], 20)
    assert invalidate(once, [b"a/b/f"], 20) == once
    assert invalidate(once, [b"c/f"], 20) == b"\0-1 2\na\0-1 1\nb\0-1 0\nc\0-1 0\n"


@pytest.mark.parametrize("data", [b"x", b"\0no numbers\n", b"\x001\n", b"\x001 1 1\n"])
def test_another_format(data):
    with pytest.raises(ValueError, match=r"not found|unpack|invalid literal"):
        invalidate(data, [], 20)

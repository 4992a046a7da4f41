from __future__ import annotations

import pytest

from gds_lfs.porcelain.pointers import Selection, anchor


@pytest.mark.parametrize(
    ("include", "exclude", "path", "selected"),
    [
        ([], [], b"a.bin", True),
        (["*.bin"], [], b"deep/down/a.bin", True),
        (["/a.bin"], [], b"deep/a.bin", False),
        (["foo/"], [], b"foo/x.bin", True),
        (["foo/"], [], b"bar/foo", False),
        (["**/foo/**"], [], b"a/foo/x.bin", True),
        (["d,e"], [], b"d/x.bin", False),
        (["d,e"], [], b"d,e/x.bin", True),
        ([], ["foo/"], b"foo/x.bin", False),
        (["foo/"], ["*.txt"], b"foo/x.txt", False),
        (["\udcff*"], [], b"\xff\xfe.bin", True),
        (["\\[1\\].bin"], [], b"[1].bin", True),
    ],
)
def test_selection_means_what_gitignore_means(
    include: list[str], exclude: list[str], path: bytes, selected: bool
) -> None:
    assert (path in Selection(include, exclude)) is selected


def test_dotted_patterns_start_where_the_user_stands() -> None:
    assert anchor("./one.bin", b"sub/") == "/sub/one.bin"
    assert anchor("../one.bin", b"sub/deep/") == "/sub/one.bin"
    assert anchor("./deep/", b"sub/") == "/sub/deep/"
    assert anchor("*.bin", b"sub/") == "*.bin"
    selection = Selection(["./one.bin"], prefix=b"sub/")
    assert b"sub/one.bin" in selection
    assert b"one.bin" not in selection


def test_includes_that_match_nothing_are_known() -> None:
    selection = Selection(["*.bin", "nothing"])
    assert selection.unmatched([b"a.bin", b"b.txt"]) == ["nothing"]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.git.paths import c_quote, c_unquote, quote


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        (b"plain/path.bin", "plain/path.bin"),
        (b" a b ", " a b "),
        (b"tab\t", r'"tab\t"'),
        (b"new\nline", r'"new\nline"'),
        (b'q"uote', r'"q\"uote"'),
        (b"back\\slash", r'"back\\slash"'),
        ("ü".encode(), r'"\303\274"'),
        (b"\xff\x01\x7f", r'"\377\001\177"'),
        (b"\a\b\v\f\r", r'"\a\b\v\f\r"'),
    ],
)
def test_paths_are_printed_as_git_does(path, printed):
    assert quote(path) == printed


@given(st.binary(), st.binary())
def test_quoting_is_undone(text, rest):
    assert c_unquote(c_quote(text) + b" " + rest) == (text, b" " + rest)


@pytest.mark.parametrize("text", [b"", b"plain", b'"open', rb'"bad \x escape"', rb'"\777"', b'"ends \\"'])
def test_what_is_not_quoted(text):
    assert c_unquote(text) is None

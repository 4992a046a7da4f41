from __future__ import annotations

import pytest

from gds_lfs.content.hashing import EMPTY, from_hex, oid_of, oid_of_file

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def test_an_id_is_what_sha256sum_prints(tmp_path):
    assert oid_of(b"hello").hex() == HELLO
    assert oid_of(memoryview(b"hello")) == from_hex(HELLO)
    assert EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    path = tmp_path / "file"
    path.write_bytes(b"hello" * 500_000)
    assert oid_of_file(path) == oid_of(b"hello" * 500_000)


@pytest.mark.parametrize("text", ["", HELLO[:-1], HELLO + "0", HELLO.upper(), HELLO[:-1] + "g", HELLO[:-1] + " "])
def test_other_text_is_no_id(text):
    with pytest.raises(ValueError, match="not an object id"):
        from_hex(text)

from __future__ import annotations

from gds_lfs.content.hashing import EMPTY, oid_of, oid_of_file

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def test_an_id_is_what_sha256sum_prints(tmp_path):
    assert oid_of(b"hello").hex() == HELLO
    assert oid_of(memoryview(b"hello")) == bytes.fromhex(HELLO)
    assert EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    path = tmp_path / "file"
    path.write_bytes(b"hello" * 500_000)
    assert oid_of_file(path) == oid_of(b"hello" * 500_000)

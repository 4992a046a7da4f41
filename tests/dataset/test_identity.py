from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from gds_lfs.dataset.identity import Cell, FileRef, content_key, derived_key, file_path, row_id


def test_golden_content_key() -> None:
    cells: list[tuple[str, Cell]] = [
        ("b", "é"),
        ("a", -3),
        ("c", None),
        ("d", 1.5),
        ("e", b"\0"),
        ("f", FileRef(b"\x11" * 32, 5, "png")),
    ]
    parts = [b"a", b"i-3", b"b", "sé".encode(), b"c", b"n", b"d", bytes.fromhex("723ff8000000000000")]
    parts += [b"e", b"b\0", b"f", b"f" + b"\x11" * 32]
    expected = hashlib.sha256(b"".join(len(part).to_bytes(4, "little") + part for part in parts)).digest()
    assert content_key(cells) == content_key(cells[::-1]) == expected
    assert row_id(expected) == expected.hex()[:32]
    assert row_id(content_key([("name", "ann"), ("age", 3)])) == "d0d2480cadbc1c9134423243e5b92952"


cells = st.sampled_from([None, "", "n", "i1", 1, 1.0, 0, 0.0, "1", b"", b"1", b"s", "\0", FileRef(b"x" * 32, 1, "png")])
rows = st.dictionaries(st.sampled_from(["", "a", "aa", "b"]), cells)


@given(rows, rows)
def test_different_rows_have_different_keys(one: dict[str, Cell], two: dict[str, Cell]) -> None:
    same = {(k, type(v), repr(v)) for k, v in one.items()} == {(k, type(v), repr(v)) for k, v in two.items()}
    assert (content_key(one.items()) == content_key(two.items())) is same


def test_a_derived_key_depends_on_type_code_and_inputs() -> None:
    keys = {
        derived_key("int", "c", [1]),
        derived_key("float", "c", [1]),
        derived_key("int", "d", [1]),
        derived_key("int", "c", ["1"]),
        derived_key("int", "c", [1, None]),
        derived_key("int", "c", []),
    }
    assert len(keys) == 6


def test_the_name_of_a_file_does_not_count_only_its_content() -> None:
    assert content_key([("f", FileRef(b"x" * 32, 1, "csv"))]) == content_key([("f", FileRef(b"x" * 32, 1, "txt"))])


def test_paths() -> None:
    identity = "ab" * 16
    assert file_path("image", identity, "png") == f"image/ab/{identity}.png"
    odd = file_path("image", "../../etc/x", "png")
    assert odd.startswith("image/")
    assert ".." not in odd
    assert odd.count("/") == 2

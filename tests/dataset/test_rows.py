from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gds_lfs.dataset.declaration import Field
from gds_lfs.dataset.fieldtype import parse_spelling
from gds_lfs.dataset.rows import MISSING, ReturnError, shape

A = Field("a", parse_spelling("int"))
B = Field("b", parse_spelling("str"))
C = Field("c", parse_spelling("int"), required=False, default=7)
IMAGE = Field("image", parse_spelling("File[png]"))


def rows(result: object, *fields: Field) -> list[list[Any]]:
    return list(shape(result, fields))


ROWS = [[1, "x"], [2, "y"]]


@pytest.mark.parametrize(
    "result",
    [
        ([1, 2], ["x", "y"]),
        ((1, 2), ("x", "y")),
        (iter([1, 2]), (each for each in "xy")),
        (range(1, 3), {"x": 0, "y": 0}.keys()),
        {"b": ["x", "y"], "a": [1, 2]},
        [{"a": 1, "b": "x"}, {"b": "y", "a": 2}],
        ({"a": 1, "b": "x"}, {"b": "y", "a": 2}),
        [(1, "x"), (2, "y")],
        zip([1, 2], "xy", strict=True),
        ([each, text] for each, text in [(1, "x"), (2, "y")]),
    ],
    ids=[
        "lists",
        "tuples",
        "iterators",
        "views",
        "dict",
        "dicts",
        "tuple of dicts",
        "tuples of rows",
        "zip",
        "generator",
    ],
)
def test_accepted_shapes(result: object) -> None:
    assert rows(result, A, B) == ROWS


@pytest.mark.parametrize(
    "result", [[1, 2], iter([1, 2]), ([1, 2],), {"a": [1, 2]}, [{"a": 1}, {"a": 2}], [(1,), (2,)], (1, 2)]
)
def test_one_field_needs_no_tuple(result: object) -> None:
    assert rows(result, A) == [[1], [2]]


@pytest.mark.parametrize("result", [[Path("x"), "y"], (Path("x"), "y"), ([Path("x"), "y"],)])
def test_one_field_of_files(result: object) -> None:
    assert rows(result, IMAGE) == [[Path("x")], ["y"]]


def test_fields_with_defaults_may_be_left_out() -> None:
    assert rows(([1, 2],), A, C) == [[1, MISSING], [2, MISSING]]
    assert rows(([1, 2], None), A, C) == [[1, MISSING], [2, MISSING]]
    assert rows({"a": [1]}, A, C) == [[1, MISSING]]
    assert rows([{"a": 1}, (2,), (3, 4)], A, C) == [[1, MISSING], [2, MISSING], [3, 4]]


def test_columns_go_to_the_fields_that_need_one() -> None:
    assert rows(([1, 2], ["x", "y"]), A, C, B) == [[1, MISSING, "x"], [2, MISSING, "y"]]


def test_no_rows() -> None:
    assert rows(([], []), A, B) == []
    assert rows([], A, B) == []


def test_rows_come_one_by_one() -> None:
    def forever() -> Any:
        while True:
            yield 1, "x"

    assert next(shape(forever(), [A, B])) == [1, "x"]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned None; it should return `a_list, b_list`"),
        (3, "returned int"),
        ("text", "returned str"),
        (([1],), "returned 1 column; the stored fields are 2: a, b"),
        (([1], ["x"], [3]), "returned 3 columns; the stored fields are 2: a, b"),
        (([1, 2], ["x"]), "returned columns of different lengths: a 2, b 1"),
        ((iter([1, 2]), iter(["x"])), "different lengths: b ends first"),
        ((1, "x"), "returned int for the column a; a column is a list"),
        (([1], "xy"), "returned str for the column b"),
        (([1], None), "returned None for the column b, which has no default"),
        ([[1, 2], ["x", "y"]], "a list of lists: rows or columns? Return the columns as `a_list, b_list`"),
        ([[1, 2, 3]], "row 1 has 3 values; the stored fields are 2: a, b"),
        ([(1, "x"), (1,)], "row 2 has 1 value"),
        ([1, 2], "row 1 is int; a row is a dict or a tuple of a, b"),
        ([{"a": 1, "z": 2}], "row 1: 'z' is no stored field; those are a, b"),
        ({"a": [1], "z": [2]}, "'z' is no stored field"),
        ({"a": [1]}, "returned no column b"),
    ],
)
def test_refused_shapes(result: object, message: str) -> None:
    with pytest.raises(ReturnError, match=re.escape(message)):
        rows(result, A, B)


def test_two_columns_for_one_field_of_files() -> None:
    with pytest.raises(ReturnError, match="returned 2 columns; the stored fields are 1: image"):
        rows((["a.png"], ["b.png"]), IMAGE)

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from gds_lfs.dataset.parse.checks import Changes, value_problems
from gds_lfs.dataset.parse.describe import describe
from gds_lfs.dataset.parse.result import Function, Sample, Value


def problems(kind: str, value: Any, declared: str = "") -> list[tuple[str, bool]]:
    looked_at = msgspec.convert(describe(value), Value)
    found = value_problems(Function(kind, "f", "index.py:1", declared), looked_at)
    return [(each.kind, each.is_failure) for each in found]


@pytest.mark.parametrize("value", [1, 1.5, True, [1, 2], [[0.5]]])
def test_what_an_input_may_be(value: Any) -> None:
    assert problems("input", value) == []


@pytest.mark.parametrize("value", [1, 1.5, True, "cat", {"a": 1, "b": "cat"}, [1]])
def test_what_metadata_may_be(value: Any) -> None:
    assert problems("metadata", value) == []


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("input", None, ("none_value", True)),
        ("metadata", None, ("none_value", False)),
        ("input", [math.nan], ("nan_value", True)),
        ("metadata", math.nan, ("nan_value", False)),
        ("ground_truth", [math.inf], ("infinite_value", False)),
        ("input", "text", ("wrong_type", True)),
        ("input", [], ("wrong_type", True)),
        ("ground_truth", {"a": 1}, ("wrong_type", True)),
        ("metadata", [1, 2], ("wrong_type", True)),
        ("metadata", {"a": {"b": 1}}, ("wrong_type", True)),
        ("metadata", {"a": [1, 2]}, ("wrong_type", True)),
        ("metadata", {"a": None}, ("none_value", False)),
        ("input", object(), ("wrong_type", True)),
    ],
)
def test_what_is_wrong(kind: str, value: Any, expected: tuple[str, bool]) -> None:
    assert problems(kind, value) == [expected]


@pytest.mark.parametrize(
    ("value", "declared", "fits"),
    [
        (1, "int", True),
        (1, "float", True),
        (1.5, "int", False),
        ("a", "str", True),
        (1, "str", False),
        ([1.0], "float32", False),
        (True, "bool", True),
        ([1], "list", True),
        ({"a": 1}, "dict", True),
        ({"a": 1}, "int", False),
    ],
)
def test_declared_types(value: Any, declared: str, fits: bool) -> None:
    kind = "metadata" if isinstance(value, (str, dict)) else "ground_truth"
    assert problems(kind, value, declared) == ([] if fits else [("wrong_type", True)])


def test_a_fields_value_is_what_its_type_allows() -> None:
    assert problems("field", None) == problems("transform", None) == []


def look(changes: Changes, value: Any, kind: str = "input", split: str = "all") -> list[tuple[str, bool]]:
    sample = Sample(kind, "f", split, 0, "id", msgspec.convert(describe(value), Value))
    return [(each.kind, each.is_failure) for each in changes.look(sample)]


def test_changes_are_told_once_a_split() -> None:
    changes = Changes()
    assert look(changes, [1, 2]) == []
    assert look(changes, [3, 4]) == []
    assert look(changes, [1.0, 2, 3]) == [("dtype_changes", True), ("shape_changes", True)]
    assert look(changes, [1.0, 2, 3]) == []
    assert look(changes, [1, 2, 3], split="other") == [("shape_changes", True)]
    assert look(changes, 1, kind="metadata") == []
    assert look(changes, "a", kind="metadata") == [("dtype_changes", False)]
    assert look(changes, None, kind="metadata") == []


def test_the_parts_of_a_dict_are_compared() -> None:
    changes = Changes()
    assert look(changes, {"a": 1, "b": 1}, kind="metadata") == []
    assert look(changes, {"b": 1.5, "c": 1}, kind="metadata") == [("dtype_changes", False)]

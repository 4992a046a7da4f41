from __future__ import annotations

import array
import json
import math
from typing import Any

import numpy as np
import pytest

from gds_lfs.dataset.parse.describe import describe


class Tensor:
    """Something like PyTorch's."""

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data)
        self.shape = self.data.shape
        self.dtype = f"torch.{self.data.dtype}"

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Any:
        return self.data


@pytest.mark.parametrize(
    ("value", "dtype", "shape", "least", "most"),
    [
        (True, "bool", [], 1, 1),
        (-3, "int", [], -3, -3),
        (2.5, "float", [], 2.5, 2.5),
        ([1, 2, 3], "int", [3], 1, 3),
        ([[1, 2], [3, 4.5]], "float", [2, 2], 1, 4.5),
        (((True, False),), "bool", [1, 2], 0, 1),
        (array.array("f", [1, 2]), "f", [2], 1.0, 2.0),
        (memoryview(b"abc"), "B", [3], 97, 99),
        (np.float32(0.5), "float32", [], 0.5, 0.5),
        (np.arange(6, dtype="uint8").reshape(2, 3), "uint8", [2, 3], 0, 5),
        (np.array([1.0, math.nan, 3.0]), "float64", [3], 1.0, 3.0),
        ([np.float32(1), np.float32(2)], "float32", [2], 1.0, 2.0),
        (Tensor([[1.5]]), "float32", [1, 1], 1.5, 1.5),
    ],
)
def test_numbers(value: Any, dtype: str, shape: list[int], least: float, most: float) -> None:
    found = describe(value)
    dtype = dtype if not isinstance(value, Tensor) else "float64"
    assert (found["dtype"], found["shape"], found["min"], found["max"]) == (dtype, shape, least, most)
    assert "problem" not in found
    json.dumps(found, allow_nan=False)


def test_what_is_no_number_is_counted() -> None:
    for value in ([math.nan, math.inf, 1.0], np.array([math.nan, -math.inf, 1.0])):
        found = describe(value)
        assert (found["nan"], found["infinite"], found["min"], found["max"]) == (1, 1, 1.0, 1.0)
    assert "min" not in describe(math.nan)
    assert describe(1 << 80)["max"] == float(1 << 80)
    assert describe(np.zeros((0, 3)))["shape"] == [0, 3]


def test_text_and_dicts() -> None:
    assert describe("cat") == {"type": "str", "dtype": "str", "shape": [], "text": "cat"}
    assert describe("x" * 100)["text"] == "x" * 59 + "…"
    assert describe(None) == {"type": "None"}
    assert describe({"a": 1, 2: "b"})["items"]["2"]["text"] == "b"
    assert describe(["a", "b"])["dtype"] == "str"
    assert describe(np.array(["a", "b"]))["text"] == "a"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([[1], [1, 2]], "its lists are of different lengths"),
        ([1, [2]], "it holds lists beside single values"),
        ([1, "a"], "it holds numbers and text"),
        ([None], "it holds None, which is no number"),
        ({1, 2}, "set is no array, number or list"),
        (np.array([[1], [1, 2]], dtype=object), "an array of Python objects: are its parts of different lengths?"),
    ],
)
def test_what_is_no_value(value: Any, problem: str) -> None:
    assert describe(value)["problem"] == problem


def test_an_image_is_no_array() -> None:
    from PIL import Image

    assert describe(Image.new("RGB", (2, 2)))["problem"].endswith("numpy.asarray() makes an array of it")


def test_a_list_without_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert "more than 32 deep" in describe(endless)["problem"]

"""What a value looks like, in a form that travels as JSON: its type, dtype, shape and range.

::

    {"type": "ndarray", "dtype": "float32", "shape": [28, 28, 1], "min": 0.0, "max": 1.0, "nan": 0, "infinite": 0}
    {"type": "str", "dtype": "str", "shape": [], "text": "cat"}
    {"type": "dict", "items": {name: description, …}}
    {"type": "Image", "problem": "…"}                   for what is no value at all

Arrays are known by what they can do, so that no library is imported that user code has not imported. Standard library
only, and Python 3.8: the user's interpreter runs it.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_TEXT = 60
_DEEPEST = 32
_SCALARS = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"), (bytes, "bytes"))


def describe(value: Any) -> dict[str, Any]:
    """The description of a handler's result. Raises nothing but what the value's own methods raise."""
    if isinstance(value, dict):
        return {"type": "dict", "items": {_short(str(key)): describe(each) for key, each in value.items()}}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _array(value)
    if isinstance(value, (list, tuple)):
        return _nested(value)
    return _single(value)


def _single(value: Any) -> dict[str, Any]:
    """What is neither an array of some library nor made of other values."""
    if value is None:
        return {"type": "None"}
    for kind, name in _SCALARS:
        if isinstance(value, kind):
            return {"type": type(value).__name__, "dtype": name, "shape": [], **_scalar(value)}
    if isinstance(value, memoryview) or type(value).__name__ == "array":
        view = memoryview(value)
        flat = view.tolist()
        return {"type": type(value).__name__, "dtype": view.format, "shape": list(view.shape or ()), **_range(flat)}
    if hasattr(value, "path") and hasattr(value, "read_bytes"):
        return {"type": "File", "dtype": str(value.kind), "shape": [], "text": f"{len(value.read_bytes()):,} bytes"}
    name = type(value).__name__
    more = "; numpy.asarray() makes an array of it" if hasattr(value, "__array_interface__") else ""
    return {"type": name, "problem": f"{name} is no array, number or list{more}"}


def _scalar(value: Any) -> dict[str, Any]:
    return {"text": _short(repr(value) if isinstance(value, bytes) else value)} if _is_text(value) else _range([value])


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _array(value: Any) -> dict[str, Any]:
    """An array or tensor: NumPy's, or what becomes one; otherwise by its own `min` and `max`."""
    name = type(value).__name__
    dtype = str(getattr(value.dtype, "name", value.dtype)).replace("torch.", "")
    found: dict[str, Any] = {"type": name, "dtype": dtype, "shape": [int(each) for each in value.shape]}
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return found
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array = numpy.asarray(value)
    if array.dtype.kind == "O":
        found["problem"] = "an array of Python objects: are its parts of different lengths?"
    elif array.dtype.kind in "USmM":
        found["text"] = _short(str(array.reshape(-1)[0])) if array.size else ""
    elif array.dtype.kind in "biuf":
        found.update(_array_range(numpy, array))
    return found


def _array_range(numpy: Any, array: Any) -> dict[str, Any]:
    found = {"nan": 0, "infinite": 0}
    if array.dtype.kind == "f":
        finite = numpy.isfinite(array)
        if not finite.all():
            found["nan"] = int(numpy.isnan(array).sum())
            found["infinite"] = int(array.size - finite.sum()) - found["nan"]
            array = array[finite]
    return {**found, "min": _number(array.min()), "max": _number(array.max())} if array.size else found


def _nested(value: Any) -> dict[str, Any]:
    shape: list[int] = []
    problem = _measure(value, 0, shape)
    name = type(value).__name__
    if problem:
        return {"type": name, "shape": shape, "problem": problem}
    leaves = list(_leaves(value))
    if any(hasattr(leaf, "dtype") for leaf in leaves) and "numpy" in sys.modules:
        return {**_array(sys.modules["numpy"].asarray(value)), "type": name}
    kinds = {_kind(leaf) for leaf in leaves}
    if None in kinds:
        odd = next(leaf for leaf in leaves if _kind(leaf) is None)
        return {"type": name, "shape": shape, "problem": f"it holds {_what(odd)}, which is no number"}
    if kinds <= {"str", "bytes"}:
        return {"type": name, "dtype": "/".join(sorted(map(str, kinds))), "shape": shape}
    if kinds & {"str", "bytes"}:
        return {"type": name, "shape": shape, "problem": "it holds numbers and text"}
    dtype = "float" if "float" in kinds else "int" if "int" in kinds else "bool"
    return {"type": name, "dtype": dtype, "shape": shape, **_range(leaves)}


def _measure(value: Any, depth: int, shape: list[int]) -> str:
    """Fill in the shape of nested lists; what is wrong with it, or nothing."""
    if depth > _DEEPEST:
        return f"a list nested more than {_DEEPEST} deep"
    shape.append(len(value))
    lists = [each for each in value if isinstance(each, (list, tuple))]
    if not lists:
        return ""
    if len(lists) < len(value):
        return "it holds lists beside single values"
    first, *others = lists
    problem = _measure(first, depth + 1, shape)
    for each in others:
        inner: list[int] = []
        problem = problem or _measure(each, depth + 1, inner)
        if not problem and inner != shape[depth + 1 :]:
            return "its lists are of different lengths"
    return problem


def _leaves(value: Any) -> Iterator[Any]:
    for each in value:
        if isinstance(each, (list, tuple)):
            yield from _leaves(each)
        else:
            yield each


def _kind(leaf: Any) -> str | None:
    return next((name for kind, name in _SCALARS if isinstance(leaf, kind)), None)


def _range(values: list[Any]) -> dict[str, Any]:
    finite = [each for each in values if math.isfinite(each)]
    nan = sum(1 for each in values if each != each)  # noqa: PLR0124 - what NaN is known by
    found = {"nan": nan, "infinite": len(values) - len(finite) - nan}
    return {**found, "min": _number(min(finite)), "max": _number(max(finite))} if finite else found


def _number(value: Any) -> int | float:
    """A number as JSON takes it: one too large for other readers becomes a float."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float):
        return plain
    return int(plain) if abs(int(plain)) < 1 << 63 else float(plain)


def _what(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"

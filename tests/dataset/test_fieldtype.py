from __future__ import annotations

import json
from typing import Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gds_lfs import File, jpg, png
from gds_lfs.dataset.fieldtype import FieldType, from_annotation, parse_spelling

SPELLINGS = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "bytes": bytes,
    "int | None": int | None,
    "str | None": Optional[str],  # noqa: UP045
    'Literal["cat", "dog"]': Literal["cat", "dog"],
    "Literal[1, 2] | None": Literal[1, 2] | None,
    "Literal[True]": Literal[True],
    'Literal["a", "it\'s"] | None': Literal["a", "it's", None],  # noqa: PYI061
    "File[png]": File[png],
    "File[png | jpg]": File[png | jpg],
    "File[jpg | png] | None": File[jpg] | File[png] | None,
    "File[png] | None": Optional[File[png]],  # noqa: UP045
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_type_has_one_spelling_that_reads_back(spelling: str) -> None:
    kind = from_annotation(SPELLINGS[spelling])
    assert kind.spelling == spelling
    assert parse_spelling(spelling) == kind


@pytest.mark.parametrize("text", ["", "list", "File[]", "File[mov]", "Literal[]", "int|None", "File[png|jpg]", "File"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        parse_spelling(text)


@pytest.mark.parametrize(
    "annotation",
    [list, dict[str, int], int | str, png, png | jpg, None, object, Literal["a", 1], Literal[None], 3],  # noqa: PYI061
)
def test_other_annotations_are_refused(annotation: object) -> None:
    with pytest.raises(TypeError):
        from_annotation(annotation)


def test_file_takes_kinds_only() -> None:
    with pytest.raises(TypeError, match=r"File\[str\]: not a kind"):
        File[str]


@pytest.mark.parametrize(
    ("spelling", "value", "stored"),
    [
        ("str", "é", "é"),
        ("int", 3, 3),
        ("float", 3, 3.0),
        ("float", -0.0, 0.0),
        ("bool", True, 1),
        ("bytes", b"\0x", b"\0x"),
        ("int | None", None, None),
        ("Literal[1, 2]", 2, 2),
    ],
)
def test_values_that_fit(spelling: str, value: object, stored: object) -> None:
    checked = parse_spelling(spelling).check(value)
    assert (checked, type(checked)) == (stored, type(stored))
    assert str(checked) == str(stored)  # -0.0 == 0.0


@pytest.mark.parametrize(
    ("spelling", "value", "message"),
    [
        ("str", 3, r"3 \(int\), but the type is str"),
        ("str", None, r"write `str \| None`"),
        ("str", "\ud800", "surrogate"),
        ("int", True, r"True \(bool\)"),
        ("int", 3.0, r"3.0 \(float\)"),
        ("int", 2**63, "64 bits"),
        ("float", float("nan"), "NaN"),
        ("float", True, "bool"),
        ("bool", 1, r"1 \(int\)"),
        ("bytes", "x", "str"),
        ('Literal["cat", "dog"]', "cow", "'cow', but the type is Literal"),
    ],
)
def test_values_that_do_not_fit(spelling: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_spelling(spelling).check(value)


def test_the_value_inside_a_numpy_scalar_is_taken() -> None:
    class Scalar:
        def item(self) -> int:
            return 7

    assert parse_spelling("int").check(Scalar()) == 7
    assert parse_spelling("float").check(Scalar()) == 7.0


scalars = st.one_of(
    st.tuples(st.just("str"), st.text(st.characters(exclude_categories=["Cs"]))),
    st.tuples(st.just("int"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("float"), st.floats(allow_nan=False)),
    st.tuples(st.just("bool"), st.booleans()),
    st.tuples(st.just("bytes"), st.binary()),
)


@given(scalars, st.booleans())
def test_a_value_crosses_the_pipe_unchanged(pair: tuple[str, object], none: bool) -> None:
    kind = FieldType(pair[0], optional=True)
    stored = kind.check(None if none else pair[1])
    crossed = kind.decode(json.loads(json.dumps(kind.encode(stored))))
    assert (crossed, type(crossed)) == (stored, type(stored))


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("int", "float", True),
        ("float", "int", False),
        ("bool", "int", True),
        ("int", "int | None", True),
        ("int | None", "int", True),
        ("int", "str", False),
        ('Literal["a"]', 'Literal["a", "b"]', True),
        ('Literal["a", "b"]', 'Literal["a"]', False),
        ('Literal["a"]', "str", True),
        ("str", 'Literal["a"]', False),
        ("File[png]", "File[png | jpg]", True),
        ("File[png | jpg]", "File[jpg]", False),
        ("File[png]", "File[any_file]", True),
        ("File[png]", "str", False),
        ("str", "File[txt]", False),
    ],
)
def test_widening(old: str, new: str, fits: bool) -> None:
    assert parse_spelling(old).widens_to(parse_spelling(new)) is fits

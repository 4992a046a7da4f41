from __future__ import annotations

import pytest

from gds_lfs import ground_truth, ingest, input, metadata, preprocess  # noqa: A004
from gds_lfs.dataset.declaration import DeclarationError
from gds_lfs.dataset.fingerprint import Source
from gds_lfs.dataset.handlers import read_handlers


class Good:
    @preprocess
    def split(rows): ...

    @input("image")
    @input("image again")
    def an_image(row): ...

    @staticmethod
    @ground_truth("label")
    def a_label(row, scale=1): ...

    @metadata("brightness")
    @staticmethod
    def brightness(row): ...

    def other(x) -> int: ...


def test_handlers_in_their_order() -> None:
    assert [(each.kind, each.name, each.function.__name__) for each in read_handlers(Good, [])] == [
        ("preprocess", "split", "split"),
        ("input", "image again", "an_image"),
        ("input", "image", "an_image"),
        ("ground_truth", "label", "a_label"),
        ("metadata", "brightness", "brightness"),
    ]


async def waits(row): ...


def yields(row):
    yield 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"f": input("a")(lambda self: 1)}, "f: drop `self`; under @input it takes the row alone"),
        ({"f": input("a")(lambda: 1)}, "f: a function under @input takes one thing: `def f(row)`"),
        ({"f": input("a")(lambda row, x: 1)}, "f: a function under @input takes one thing"),
        ({"f": preprocess(lambda *, rows: 1)}, "f: a function under @preprocess takes one thing: `def f(rows)`"),
        ({"f": preprocess(lambda a: 1), "g": preprocess(lambda a: 1)}, "g: a second @preprocess; keep one of them"),
        ({"f": input("a")(lambda a: 1), "g": input("a")(lambda a: 1)}, "g: input 'a' is what <lambda> makes already"),
        ({"f": input("a")(ingest(lambda: 1))}, "f: @ingest brings rows, @input takes rows that are there"),
        ({"f": metadata("a")(yields)}, "f: @metadata decorates a plain function, not one that yields or is async"),
        ({"f": metadata("b")(waits)}, "f: @metadata decorates a plain function, not one that yields or is async"),
        ({"x": input("x")(lambda row: 1)}, "x is a field already: give the function under @input another name"),
    ],
)
def test_what_is_no_handler(members: dict[str, object], message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_handlers(type("D", (), members), ["x"])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("decorator", [input, ground_truth, metadata])
def test_a_name_is_asked_for(decorator: object) -> None:
    assert callable(decorator)
    with pytest.raises(TypeError, match=r'takes a name: write @\w+\("name"\)'):
        decorator(lambda row: 1)


def test_a_handler_is_for_a_function() -> None:
    with pytest.raises(TypeError, match="decorates a function"):
        preprocess(Good)


def test_an_edited_handler_changes_no_fields_fingerprint() -> None:
    text = "class D:\n    x: int\n    def y(x): return x\n    @input('a')\n    def a(row): return 1\n"
    one, other = (Source({"index.py": each}, "index.py") for each in (text, text.replace("return 1", "return 2")))
    assert one.function("D", "y") == other.function("D", "y")
    assert one.agreement() != other.agreement()

from __future__ import annotations

import json
import sys
import types

import pytest

import gds_lfs
from gds_lfs.dataset import schema
from gds_lfs.dataset.declaration import Declaration, DeclarationError
from gds_lfs.dataset.reader import find_dataset, read_class

FUTURE = "from __future__ import annotations\n"
IMPORTS = """
from typing import ClassVar, Literal, Optional
from gds_lfs import File, dataset, ingest, json, jpg, png
"""


def declare(body: str, *, head: str = "@dataset", future: str = "", before: str = "", bases: str = "") -> Declaration:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    text = f"{future}{IMPORTS}{before}\n{head}\nclass Data{bases}:\n{lines}"
    module = types.ModuleType("index")
    sys.modules["index"] = module
    try:
        exec(compile(text, "index.py", "exec", dont_inherit=True), module.__dict__)
        return read_class(find_dataset(module.__dict__, "index"), module.__dict__)
    finally:
        del sys.modules["index"]


JOURNEY = """
image: File[png | jpg]
segmentation: File[png]
label: Literal["cat", "dog"] | None = None
SIZE = 3
_private: list = []
constant: ClassVar[int] = 3

@ingest
def from_web():
    return [], []

def segmentation_resized(segmentation: File[png]) -> File[png]:
    return segmentation

@staticmethod
def area(segmentation_resized: File) -> int:
    return 3

def _helper(x, y):
    return x
"""


@pytest.mark.parametrize("future", ["", FUTURE])
def test_a_whole_class(future: str) -> None:
    declared = declare(JOURNEY, head='@dataset(remote="s3://bucket/x")', future=future)
    assert (declared.name, declared.sql_file, declared.remote) == ("Data", "dataset.sqlite", "s3://bucket/x")
    assert [(field.name, str(field.type), field.required, field.inputs) for field in declared.fields] == [
        ("image", "File[png | jpg]", True, ()),
        ("segmentation", "File[png]", True, ()),
        ("label", 'Literal["cat", "dog"] | None', False, ()),
        ("segmentation_resized", "File[png]", False, ("segmentation",)),
        ("area", "int", False, ("segmentation_resized",)),
    ]
    assert [ingest.name for ingest in declared.ingests] == ["from_web"]
    assert declared.file_fields() == ["image", "segmentation", "segmentation_resized"]


def test_json_form_reads_back() -> None:
    declared = declare(JOURNEY + 'blob: bytes = b"\\0x"\nsize: float = 2\n')
    assert Declaration.from_json(json.loads(json.dumps(declared.to_json()))) == declared


def test_derived_fields_come_after_their_inputs() -> None:
    declared = declare(
        """
x: int
def c(b: int) -> int: ...
def b(a: int, x: int) -> int: ...
def a(x: int) -> int: ...
"""
    )
    assert [field.name for field in declared.derived] == ["a", "b", "c"]
    assert [field.name for field in declared.fields] == ["x", "c", "b", "a"]


@pytest.mark.parametrize("future", ["", FUTURE])
def test_a_field_called_like_a_kind_hides_no_kind(future: str) -> None:
    declared = declare("x: File[png]\ndef json(x: File[png]) -> File[json]: ...", future=future)
    assert str(declared.field("json").type) == "File[json]"


def test_the_marks_work_with_brackets_and_around_staticmethod() -> None:
    declared = declare(
        "x: int\n@ingest()\ndef a(): ...\n@staticmethod\n@ingest\ndef b(): ...\n@ingest\n@staticmethod\ndef c(): ..."
    )
    assert [ingest.name for ingest in declared.ingests] == ["a", "b", "c"]
    assert declare("x: int", head="@dataset()").remote is None


WRONG = {
    "no fields": ("pass", "has no fields"),
    "helper without underscore": ("x: int\ndef helper(x): ...", "helper: .*@ingest.*underscore"),
    "no parameters": ("x: int\ndef y() -> int: ...", "y takes no field: put @ingest"),
    "self": ("x: int\ndef y(self, x) -> int: ...", "y: drop `self`"),
    "unknown parameter": ("x: int\ndef y(z: int) -> int: ...", r"y: its parameter `z: int` is no field"),
    "constant parameter": ("x: int\ndef y(x, size=3) -> int: ...", "`size=3` is no field"),
    "star": ("x: int\ndef y(*x) -> int: ...", "is no field"),
    "generator": ("x: int\ndef y(x) -> int:\n    yield 1", "y yields"),
    "async": ("x: int\nasync def y(x) -> int: ...", "not an async one"),
    "property": ("x: int\n@property\ndef y(x) -> int: ...", "drop @property"),
    "cycle": ("x: int\ndef a(b) -> int: ...\ndef b(a) -> int: ...", "circle: a <- b <- a"),
    "itself": ("x: int\ndef a(a) -> int: ...", "circle: a <- a"),
    "case": ("x: int\nX: int", "x and X differ in case only"),
    "windows": ("con: File[png]", "Windows has no folder"),
    "kind without File": ("x: png", r"x: png is a kind of file: write File\[png\]"),
    "File without kinds": ("x: File", "say which kinds"),
    "unknown type": ("x: list", "x: list is no type of a field"),
    "two types": ("x: int | str", "one type"),
    "equals for colon": ("y: int\nx = File[png]", "x = … declares nothing"),
    "equals for colon, scalar": ("y: int\nx = int", "write `x: …`"),
    "wrong default": ('x: int = "3"', r"x: its default: '3' \(str\)"),
    "file default": ('x: File[png] = "a.png"', "no default but None"),
    "ingest with self": ("x: int\n@ingest\ndef get(self): ...", "get: an ingest takes no parameters; drop `self`"),
    "async ingest": ("x: int\n@ingest\nasync def get(): ...", "not an async one"),
    "contradiction": (
        "x: File[png]\ndef y(x: File[jpg]) -> int: ...",
        r"declared File\[jpg\], the field is File\[png\]",
    ),
    "contradiction, scalar": ("x: int\ndef y(x: str) -> int: ...", "declared str, the field is int"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    body, message = WRONG[name]
    with pytest.raises(DeclarationError, match=message):
        declare(body)


@pytest.mark.parametrize("future", ["", FUTURE])
def test_a_name_that_is_not_there(future: str) -> None:
    with pytest.raises((DeclarationError, NameError), match="jpeg"):
        declare("x: File[jpeg]", future=future)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\\b", "index.py", ".gitignore", "a\nb", 3, ".."])
def test_sql_file_is_a_name_beside_index_py(name: object) -> None:
    with pytest.raises(DeclarationError, match="sql_file"):
        declare("x: int", head=f"@dataset(sql_file={name!r})")


def test_sql_file_is_no_field() -> None:
    with pytest.raises(DeclarationError, match="this field's folder"):
        declare("x: File[png]", head="@dataset(sql_file='x')")


@pytest.mark.parametrize("remote", ["", "a\nb", 3])
def test_remote_is_a_line_of_text(remote: object) -> None:
    with pytest.raises(DeclarationError, match="remote="):
        declare("x: int", head=f"@dataset(remote={remote!r})")


def test_a_base_class_is_refused() -> None:
    with pytest.raises(DeclarationError, match="Data inherits from Base"):
        declare("x: int", before="class Base: ...\n", bases="(Base)")


def test_no_dataset_and_two_datasets() -> None:
    with pytest.raises(DeclarationError, match="no dataset is here"):
        declare("x: int", head="")
    with pytest.raises(DeclarationError, match=r"more than one dataset \(One and Data\)"):
        declare("x: int", before="@dataset\nclass One:\n    x: int\n")


def test_the_package_exports_the_schema_and_its_version() -> None:
    assert set(gds_lfs.__all__) == {*schema.__all__, "__version__"}
    for name in schema.__all__:
        assert getattr(gds_lfs, name) is getattr(schema, name)

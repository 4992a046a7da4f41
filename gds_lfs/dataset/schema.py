"""What an `index.py` imports: the decorators, `File` and its kinds.

::

    from gds_lfs import File, dataset, ingest, jpg, png

    @dataset
    class Segmentation:
        image: File[png | jpg]                                  # stored fields: annotated attributes
        label: Literal["cat", "dog"] | None = None              # with a default, if one makes sense

        @ingest
        def read_folder():                                      # brings rows: one list for each stored field
            return images, labels

        def size(image: File[png | jpg]) -> int:                # a derived field: computed from its parameters
            return image.path.stat().st_size

        @preprocess
        def split(rows):                                        # for training: the splits, by name
            return {"training": rows[:800], "validation": rows[800:]}

        @input("image")
        def image_input(row):                                   # what a model gets of one row
            return numpy.asarray(Image.open(row.image), "float32")

Nothing runs when `index.py` is imported: the decorators only leave marks, which `reader` reads.
Standard library only, since the user's interpreter runs it, and little of it: `import gds_lfs` loads this module, and
that is part of every `git add`.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, TypeVar, overload

from gds_lfs.dataset.kinds import KINDS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from gds_lfs.dataset.fieldtype import FieldType

__all__ = [
    "File",
    "any_file",
    "bmp",
    "csv",
    "dataset",
    "flac",
    "gif",
    "ground_truth",
    "gz",
    "h5",
    "ingest",
    "input",
    "jpg",
    "json",
    "metadata",
    "mp3",
    "mp4",
    "npy",
    "npz",
    "ogg",
    "parquet",
    "pdf",
    "png",
    "preprocess",
    "safetensors",
    "tiff",
    "txt",
    "wav",
    "webp",
    "zip",
]

DATASET_MARK = "__git_dataset__"
INGEST_MARK = "__git_dataset_ingest__"
HANDLER_MARK = "__git_dataset_handler__"
"""On a function: its (kind, name) pairs, one for each decorator."""

DEFAULT_SQL_FILE = "dataset.sqlite"

png, jpg, gif, bmp = KINDS["png"], KINDS["jpg"], KINDS["gif"], KINDS["bmp"]
webp, tiff, pdf = KINDS["webp"], KINDS["tiff"], KINDS["pdf"]
wav, mp3, flac, ogg, mp4 = KINDS["wav"], KINDS["mp3"], KINDS["flac"], KINDS["ogg"], KINDS["mp4"]
npy, npz, parquet, h5 = KINDS["npy"], KINDS["npz"], KINDS["parquet"], KINDS["h5"]
safetensors, zip, gz = KINDS["safetensors"], KINDS["zip"], KINDS["gz"]  # noqa: A001
json, csv, txt, any_file = KINDS["json"], KINDS["csv"], KINDS["txt"], KINDS["any_file"]

_Decorated = TypeVar("_Decorated")


class File:
    """A file of a row, as a transform gets it; and, with its kinds in brackets, the type of a file's field.

    It can be handed to whatever opens a path: `Image.open(image)`, `numpy.load(array)`. A transform or an
    ingest may give one back, built from a path: `File("out.png")`.
    """

    def __class_getitem__(cls, kinds: object) -> FieldType:
        from gds_lfs.dataset.fieldtype import file_type

        return file_type(kinds)

    def __init__(self, path: str | os.PathLike[str], kind: str | None = None) -> None:
        from pathlib import Path

        self.path = Path(path)
        self.kind = kind
        """The kind the content has, by name, such as `png`; None when built by hand."""

    def open(self, mode: str = "rb") -> IO[Any]:
        """The file, opened. It is for reading: what is written to it is not kept."""
        return self.path.open(mode)

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"File({str(self.path)!r})"


@overload
def dataset(cls: type, /) -> type: ...
@overload
def dataset(*, sql_file: str = ..., remote: str | None = ...) -> Callable[[type], type]: ...
def dataset(
    cls: type | None = None, /, *, sql_file: str = DEFAULT_SQL_FILE, remote: str | None = None
) -> type | Callable[[type], type]:
    """Make the class the dataset of this folder.

    `sql_file` names the database, beside `index.py`; `remote` is where the data is pushed to: a folder or an
    `s3://bucket/prefix`.
    """

    def mark(decorated: type) -> type:
        if not isinstance(decorated, type):
            raise TypeError("@dataset decorates a class")
        setattr(decorated, DATASET_MARK, {"sql_file": sql_file, "remote": remote})
        return decorated

    return mark if cls is None else mark(cls)


@overload
def ingest(function: _Decorated, /) -> _Decorated: ...
@overload
def ingest() -> Callable[[_Decorated], _Decorated]: ...
def ingest(function: Any = None, /) -> Any:
    """Mark a function of the class that brings rows.

    It takes no parameters and returns one list for each stored field, in the order they are declared (`return
    images, labels`), or the rows as dicts. It may also yield the rows. What is there already is not added again.
    """

    def mark(decorated: Any) -> Any:
        if isinstance(decorated, type):
            raise TypeError("@ingest decorates a function of the dataset's class")
        setattr(decorated, INGEST_MARK, True)
        return decorated

    return mark if function is None else mark(function)


def preprocess(function: _Decorated, /) -> _Decorated:
    """Mark the function of the class that splits the rows.

    It takes the rows, as a sequence that can be indexed and sliced, and returns a dict of such sequences by the
    splits' names. A dataset without it has one split, `all`.
    """
    _mark_handler("preprocess", "", function)
    return function


def input(name: str, /) -> Callable[[_Decorated], _Decorated]:  # noqa: A001 - what it marks is called so
    """Mark a function that makes a model's input of one row: an array, a number or a (nested) list."""
    return _named_handler("input", name)


def ground_truth(name: str, /) -> Callable[[_Decorated], _Decorated]:
    """Mark a function that makes of one row what a model is to answer: an array, a number or a (nested) list."""
    return _named_handler("ground_truth", name)


def metadata(name: str, /) -> Callable[[_Decorated], _Decorated]:
    """Mark a function that says something about one row: a scalar, or a flat dict of scalars."""
    return _named_handler("metadata", name)


def _named_handler(kind: str, name: str) -> Callable[[_Decorated], _Decorated]:
    if not isinstance(name, str) or not name:
        raise TypeError(f'@{kind} takes a name: write @{kind}("name")')

    def mark(function: _Decorated) -> _Decorated:
        _mark_handler(kind, name, function)
        return function

    return mark


def _mark_handler(kind: str, name: str, function: object) -> None:
    if isinstance(function, type):
        raise TypeError(f"@{kind} decorates a function of the dataset's class")
    setattr(function, HANDLER_MARK, (*getattr(function, HANDLER_MARK, ()), (kind, name)))

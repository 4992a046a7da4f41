"""Where the child puts the files that user code gives back, for the parent to hash and to place.

Each becomes a file of the spool folder named by a running number and its kind's extension, complete before user
code goes on: what a transform reuses or deletes for the next row is safe.

Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, Any

from gds_lfs.dataset.kinds import HEAD_SIZE, Kind, describe, recognise
from gds_lfs.dataset.rows import ReturnError

if TYPE_CHECKING:
    from gds_lfs.dataset.fieldtype import FieldType

_PIECE = 1 << 20
_PLAIN_EXTENSION = re.compile(r"[a-z0-9]{1,10}")


class Spool:
    """A folder of numbered files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._count = 0

    def take(self, value: Any, declared: FieldType) -> str:
        """Put a file's value into the spool and return its name there.

        Raises ReturnError when it is no file, or its content is of no declared kind.
        """
        self._count += 1
        if isinstance(value, (str, os.PathLike)):  # a File is one
            return self._copy(os.fsdecode(value), declared)
        if isinstance(value, io.BytesIO):
            value = value.getvalue()
        if isinstance(value, (bytes, bytearray, memoryview)):
            name = self._name(bytes(value[:HEAD_SIZE]), "", declared)
            with open(os.path.join(self._folder, name), "xb", buffering=0) as writer:
                _write(writer, value)
            return name
        if callable(getattr(value, "save", None)):
            return self._save(value, declared)
        raise ReturnError(
            f"{type(value).__name__} is no file: give a path, bytes, a File or an object with save(), such as an image"
        )

    def _copy(self, source: str, declared: FieldType) -> str:
        """Copy a user's file, in pieces."""
        if not os.path.isfile(source):
            what = "is a folder" if os.path.isdir(source) else "does not exist"
            raise ReturnError(f"the file {source if len(source) <= 200 else source[:197] + '...'} {what}")
        with open(source, "rb", buffering=0) as reader:
            piece = reader.read(_PIECE)
            name = self._name(piece[:HEAD_SIZE], source, declared)
            with open(os.path.join(self._folder, name), "xb", buffering=0) as writer:
                while piece:
                    _write(writer, piece)
                    piece = reader.read(_PIECE)
        return name

    def _save(self, value: Any, declared: FieldType) -> str:
        """Let an object save itself, in its own format where that is declared (an opened image has one)."""
        own = str(getattr(value, "format", None)).lower()
        kinds: tuple[Kind, ...] = declared.kinds
        kind = next((kind for kind in kinds if own == kind.name or own in kind.extensions), kinds[0])
        saved = os.path.join(self._folder, f"{self._count}.{kind.extensions[0]}")
        value.save(saved)
        name = self._name(head(saved), saved, declared)
        os.replace(saved, os.path.join(self._folder, name))
        return name

    def _name(self, first: bytes, origin: str, declared: FieldType) -> str:
        """The name for a content that begins like this and came from the path `origin` (empty for bytes)."""
        extension = os.path.splitext(origin)[1][1:].lower()
        kind = recognise(first, extension, declared.kinds)
        if kind is None:
            given = os.path.basename(origin) or "the content"
            raise ReturnError(f"{given} is {describe(first)}, but the type is {declared}")
        if kind.name != "any_file" or not _PLAIN_EXTENSION.fullmatch(extension):
            extension = kind.extensions[0]
        return f"{self._count}.{extension}"


def head(path: str) -> bytes:
    """The beginning of a file, which decides its kind."""
    with open(path, "rb", buffering=0) as reader:
        return reader.read(HEAD_SIZE)


def _write(writer: io.FileIO, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[writer.write(view) :]

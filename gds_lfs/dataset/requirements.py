"""What a `requirements.txt` asks for: its text with that of the files it includes, and the packages it names.

Read like pip does: a line ending in a backslash goes on in the next one, ` #` starts a comment, `-r` and `-c` name
further files, relative to the file they stand in. What is behind a URL is not read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.dataset.install_failure import EnvironmentFailure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s+|=)?(?P<path>\S.*)")
_EDITABLE = re.compile(r"(?:-e|--editable)(?:\s+|=)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MISSING = "missing_requirements"


class Needed(NamedTuple):
    """A package that an environment must have even if its requirements do not name it."""

    name: str
    range: str
    """The versions that were tried: `>=1.0,<2`."""
    oldest_python: tuple[int, int]
    newest_python: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.name}{self.range}"


class Line(NamedTuple):
    """One logical line of a requirements file."""

    file: str
    number: int
    text: str


class Requirements(NamedTuple):
    """A requirements file with those it includes: their bytes by their path from its folder, and all their lines."""

    files: dict[str, bytes]
    lines: list[Line]

    def names(self, package: str) -> bool:
        """Whether a line asks for this package, by name or in a path or URL."""
        wanted = _normal(package)
        return any(
            _normal(found[0] if (found := _NAME.match(line.text)) else "") == wanted
            or (_is_place(line.text) and wanted in _normal(line.text))
            for line in self.lines
        )

    @property
    def places(self) -> Iterator[str]:
        """The local files and folders that lines ask to install."""
        for line in self.lines:
            target = line.text.partition(" @ ")[2].strip() or line.text
            if _is_place(target) and not _REMOTE.match(target):
                yield re.split(r"\s*;|\s+--|\[", target)[0].strip()


def read(path: Path) -> Requirements:
    """The file and all it includes. Raises EnvironmentFailure when one of them is not there or cannot be read."""
    if not path.is_file():
        raise EnvironmentFailure(
            _MISSING,
            f"there is no {path.name} beside the code, and datasets.dynamicDependencies is on",
            f"add a {path.name} (an empty one will do), or: git config datasets.dynamicDependencies false",
        )
    found = Requirements({}, [])
    _read(path.parent, path.name, found)
    return found


def _read(root: Path, name: str, found: Requirements) -> None:
    content = (root / name).read_bytes()
    found.files[name] = content
    for number, text in _logical_lines(content.decode("utf-8", "replace")):
        line = Line(name, number, text)
        include = _INCLUDE.fullmatch(text)
        if include is None:
            if _EDITABLE.match(text):
                raise EnvironmentFailure(
                    "requirement",
                    f"{name}:{number}: {text}: an environment that is kept cannot depend on a folder that changes",
                    "install the package without -e, or include its code in the dataset's folder",
                )
            found.lines.append(line)
            continue
        path = include["path"]
        if _REMOTE.match(path):
            continue
        included = os.path.normpath(os.path.join(os.path.dirname(name), path))
        if included in found.files:
            continue
        if not (root / included).is_file():
            raise EnvironmentFailure(
                _MISSING,
                f"{name}:{number} includes {path}, which is not there",
                "add it to what is committed, beside the code (and to leap.yaml's include, where there is one)",
            )
        _read(root, included, found)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with something in them, and the number each starts at."""
    pending, start = "", 0
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        start = start or number
        if raw.endswith("\\") and not raw.lstrip().startswith("#"):
            pending += raw[:-1]
            continue
        line = re.sub(r"(^|\s)#.*$", "", pending + raw).strip()
        if line:
            yield start, line
        pending, start = "", 0


def _is_place(text: str) -> bool:
    return bool(_REMOTE.match(text)) or text.startswith((".", "/")) or "/" in text or text.endswith((".whl", ".tar.gz"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

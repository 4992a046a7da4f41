"""`leap.yaml`, which makes a folder a Tensorleap integration: its entry file, which files go with it, which Python.

::

    entryFile: leap_binder.py      the script that is executed; it always goes
    include: ["**/*.py", data/*]   patterns of files that go; none means all
    exclude: ["**/test_*"]         patterns of files that do not
    pythonVersion: py310           the Python that it is run with

Other keys are somebody else's. Patterns are relative to the folder and mean what they mean to Tensorleap's own tool:
`*` and `?` stay within a folder, `**` spans any number of folders, `{a,b}` and `[a-z]` are alternatives, and only
files match: the name of a folder matches nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gds_lfs.dataset.parse import loader
from gds_lfs.dataset.requirements import Needed
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "leap.yaml"
NEEDED = Needed(loader.NAME, loader.RANGE, *loader.PYTHONS)
"""What an environment must have for a folder with a `leap.yaml`."""

_PYTHON = re.compile(r"(?:py(?:thon)?)?3\.?(?P<minor>\d{1,2})")


class LeapYamlError(DatasetError):
    """A `leap.yaml` that cannot be used: `where` (`leap.yaml:3`, or the file alone), what is wrong, and what to do."""

    def __init__(self, headline: str, advice: str, line: int | None = None) -> None:
        self.where = NAME if line is None else f"{NAME}:{line}"
        super().__init__(f"{self.where}: {headline}\n{advice}")
        self.headline = headline
        self.advice = advice


class Selection(NamedTuple):
    """The files that go, and a line about each pattern that matched none."""

    files: list[str]
    unmatched: list[str]


class LeapYaml(NamedTuple):
    """What a `leap.yaml` says. Paths are relative to its folder, with slashes."""

    entry: str
    include: list[str]
    exclude: list[str]
    python: tuple[int, int] | None

    def select(self, paths: Iterable[str]) -> Selection:
        """Which of the files in the folder go. Raises LeapYamlError when the entry file is none of them."""
        there = sorted(paths)
        if self.entry not in there:
            raise LeapYamlError(f"entryFile: there is no {self.entry}", f"git add {self.entry}, or mend entryFile")
        unmatched = []
        chosen: set[str] = set()
        for pattern in self.include or ["**"]:
            matched = _matching(pattern.removeprefix("./"), there)
            chosen |= matched
            if not matched:
                unmatched.append(f"include: {pattern} matches no file{_hint(pattern, there)}")
        for pattern in self.exclude:
            matched = _matching(pattern, there)
            chosen -= matched
            if not matched:
                unmatched.append(f"exclude: {pattern} matches no file{_hint(pattern, there)}")
        return Selection(sorted(chosen | {self.entry}), unmatched)


def read(text: str) -> LeapYaml:
    """Read the text of a `leap.yaml`. Raises LeapYamlError, which names the key."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or "it cannot be read"
        raise LeapYamlError(f"this is no YAML: {said}", "mend it", None if mark is None else mark.line + 1) from None
    if not isinstance(found, dict):
        raise LeapYamlError("there are no keys in it", "write at least: entryFile: leap_binder.py")
    return LeapYaml(_entry(found), _patterns(found, "include"), _patterns(found, "exclude"), _python(found))


def _entry(found: dict[str, Any]) -> str:
    entry = found.get("entryFile")
    if entry is None:
        raise LeapYamlError(
            "entryFile is missing", "name the script that registers everything: entryFile: leap_binder.py"
        )
    if not isinstance(entry, str):
        raise LeapYamlError(f"entryFile is {_kind(entry)}; it is the path of one file", "entryFile: leap_binder.py")
    path = entry.strip().replace("\\", "/").removeprefix("./")
    if path.startswith("/") or ".." in path.split("/") or re.match(r"[A-Za-z]:", path):
        raise LeapYamlError(f"entryFile: {entry} is outside the folder", "name a file beside leap.yaml, or below it")
    if not path.endswith(".py"):
        raise LeapYamlError(f"entryFile: {entry} is no Python file", "entryFile: leap_binder.py")
    return path


def _patterns(found: dict[str, Any], key: str) -> list[str]:
    listed = found.get(key)
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise LeapYamlError(f"{key} is {_kind(listed)}; it is a list of patterns", f'{key}: ["**/*.py"]')
    for pattern in listed:
        if not isinstance(pattern, str):
            raise LeapYamlError(f"{key} holds {_kind(pattern)}; it is a list of patterns", f'{key}: ["**/*.py"]')
    return [pattern.replace("\\", "/") for pattern in listed]


def _python(found: dict[str, Any]) -> tuple[int, int] | None:
    version = found.get("pythonVersion")
    if version is None or version == "":
        return None
    if isinstance(version, float):
        raise LeapYamlError(
            f"pythonVersion is the number {version}, which cannot tell 3.1 from 3.10", "pythonVersion: py310"
        )
    match = _PYTHON.fullmatch(str(version).strip().lower())
    if match is None:
        raise LeapYamlError(f"pythonVersion: {version} is no version of Python", "pythonVersion: py310")
    return 3, int(match["minor"])


def _matching(pattern: str, paths: list[str]) -> set[str]:
    expression = _expression(pattern)
    return {path for path in paths if expression is not None and expression.fullmatch(path)}


def _hint(pattern: str, paths: list[str]) -> str:
    folder = pattern.removeprefix("./").rstrip("/")
    if any(path.startswith(f"{folder}/") for path in paths):
        return f": it is a folder; {folder}/** matches what is in it"
    return ""


def _expression(pattern: str) -> re.Pattern[str] | None:
    """The pattern as a regular expression; None for one that is ill-formed, which matches nothing."""
    parts, depth, at = [], 0, 0
    while at < len(pattern):
        part, at, depth = _next_part(pattern, at, depth)
        parts.append(part)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        return None


def _next_part(pattern: str, at: int, depth: int) -> tuple[str, int, int]:
    """The regular expression for what stands at `at`, where the rest begins, and how many braces are open there."""
    alone = at == 0 or pattern[at - 1] == "/"
    if alone and pattern.startswith("**/", at):
        return "(?:[^/]+/)*", at + 3, depth
    if alone and pattern[at:] == "**":
        return ".*", at + 2, depth
    character = pattern[at]
    if character == "[" and (end := pattern.find("]", at + 2)) > 0:
        inside = pattern[at + 1 : end]
        negated = inside[0] in "!^"
        inside = re.escape(inside[negated:]).replace(r"\-", "-")
        return f"(?!/)[{'^' if negated else ''}{inside}]", end + 1, depth
    simple = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")" if depth else r"\}", ",": "|" if depth else ","}
    depth += {"{": 1, "}": -1 if depth else 0}.get(character, 0)
    return simple.get(character, re.escape(character)), at + 1, depth


def _kind(value: object) -> str:
    return {str: "text", list: "a list", dict: "a mapping", bool: "a boolean"}.get(type(value), "a number")

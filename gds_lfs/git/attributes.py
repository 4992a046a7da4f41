"""Which files are ours: text edits of .gitattributes and .gitignore, and git's own answer for paths.

Our line in .gitattributes is `<pattern> filter=datasets diff=datasets merge=datasets -text`. `-text` keeps
line-end conversion away from content and pointers. A pattern with white space, a control character, or one
that starts with `"` or `#`, stands between C-style quotes. Lines that are not ours, comments and line ends
stay as they are.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.paths import c_quote, c_unquote, quote
from gds_lfs.git.repo import index_variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.git.repo import Repo

ATTRIBUTES = (b"filter=datasets", b"diff=datasets", b"merge=datasets", b"-text")
_BLANK = b" \t\r\n"
_NEEDS_QUOTES = re.compile(rb'[\x00-\x20\x7f]|^["#]|^\xef\xbb\xbf')
_SPECIAL = re.compile(rb"[\\*?\[]")
_QUOTED = re.compile(rb'[ \t]*"(?:[^"\\]|\\.)*"')
_BOM = b"\xef\xbb\xbf"


def literal(path: bytes) -> bytes:
    """The pattern that matches this path alone, seen from the folder of the file that holds the pattern."""
    return b"/" + _SPECIAL.sub(lambda match: b"\\" + match[0], path)


def patterns(text: bytes) -> list[bytes]:
    """The patterns whose own line gives them `filter=datasets`, in order, without quotes."""
    found = (_parse(line) for line in _lines(text))
    return [pattern for pattern, attributes in found if ATTRIBUTES[0] in attributes]


def ensure(text: bytes, patterns: Iterable[bytes]) -> bytes:
    """`text` with a line of ours for each pattern; a text that has them all comes back unchanged.

    Attributes do not reach into folders, so `folder/` becomes `folder/**`. Raises ConfigError for a pattern
    that .gitattributes cannot hold.
    """
    present = {pattern for pattern, attributes in map(_parse, _lines(text)) if set(ATTRIBUTES) <= set(attributes)}
    wanted = [pattern for pattern in map(_checked, patterns) if pattern not in present]
    return _append(text, [_written(pattern) + b" " + b" ".join(ATTRIBUTES) for pattern in dict.fromkeys(wanted)])


def remove(text: bytes, patterns: Iterable[bytes]) -> bytes:
    """`text` without our attributes on the lines of these patterns; a line with others keeps those."""
    unwanted = set(map(_checked, patterns))
    kept = [_BOM] if text.startswith(_BOM) else []
    for line in _lines(text):
        pattern, attributes = _parse(line)
        if pattern not in unwanted or ATTRIBUTES[0] not in attributes:
            kept.append(line)
            continue
        foreign = [attribute for attribute in attributes if attribute not in ATTRIBUTES]
        if foreign:
            end = line[len(line.rstrip(b"\r\n")) :]
            kept.append(_written(pattern) + b" " + b" ".join(foreign) + end)
    return b"".join(kept)


def exchange(text: bytes, old: str, new: str) -> bytes:
    """`text` with the attributes of one filter made those of another, wherever they stand: also in macros.

    Pattern, other attributes and line ends stay as they are.
    """
    wanted = re.compile(rb"(?<=[ \t])(filter|diff|merge)=%s(?=[ \t\r\n]|$)" % re.escape(old.encode()))
    changed = [_BOM] if text.startswith(_BOM) else []
    for line in _lines(text):
        if line.lstrip(_BLANK).startswith(b"#"):
            changed.append(line)
            continue
        quoted = _QUOTED.match(line)
        start = quoted.end() if quoted else 0
        changed.append(line[:start] + wanted.sub(rb"\1=" + new.encode(), line[start:]))
    return b"".join(changed)


def ensure_ignored(text: bytes, lines: Iterable[bytes]) -> bytes:
    """The text of a .gitignore with each of `lines`; one that has them all comes back unchanged."""
    present = {line.rstrip(b"\r\n") for line in _lines(text)}
    return _append(text, [line for line in dict.fromkeys(lines) if line not in present])


def check(
    repo: Repo, paths: Iterable[bytes], source: str | None = None, *, name: str = "datasets"
) -> dict[bytes, bool]:
    """For each path, whether git gives it `filter=datasets`, or another filter by its name.

    Attributes are read from the work tree (None), from the index (":") or from a tree-ish. Raises GitError.
    """
    questions = b"".join(path + b"\0" for path in paths)
    if not questions:
        return {}
    if source is None:
        return _check(repo, questions, name, [], None)
    if source == ":":
        return _check(repo, questions, name, ["--cached"], None)
    # check-attr --source needs git 2.40; an index of its own does the same everywhere
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        read_attribute_files(repo, source, index)
        return _check(repo, questions, name, ["--cached"], index)


def read_attribute_files(repo: Repo, source: str, index: Path) -> None:
    """Put the .gitattributes files of a tree-ish, and nothing else, into another index."""
    from gds_lfs.git.index import update_with_git

    files = [entry for entry in repo.tree(source) if entry.path.rpartition(b"/")[2] == b".gitattributes"]
    update_with_git(repo, [(entry.mode, entry.sha, entry.path) for entry in files], index)


def _check(repo: Repo, questions: bytes, name: str, options: list[str], index: Path | None) -> dict[bytes, bool]:
    output = repo.run("check-attr", "--stdin", "-z", *options, "filter", input=questions, env=index_variable(index))
    fields = output.split(b"\0")
    return dict(zip(fields[0:-1:3], [value == name.encode() for value in fields[2::3]], strict=True))


def _lines(text: bytes) -> list[bytes]:
    """Lines with their ends, without a byte order mark; only a newline ends one."""
    return [line for line in re.split(rb"(?<=\n)", text.removeprefix(_BOM)) if line]


def _parse(line: bytes) -> tuple[bytes, list[bytes]]:
    """Pattern and attributes of a line; an empty pattern for blank lines, comments and macros."""
    stripped = line.strip(_BLANK)
    if not stripped or stripped.startswith((b"#", b"[attr]")):
        return b"", []
    quoted = c_unquote(stripped)
    if quoted is not None:
        return quoted[0], quoted[1].split()
    pattern, *attributes = stripped.split()
    return pattern, attributes


def _checked(pattern: bytes) -> bytes:
    if not pattern or b"\0" in pattern:
        raise ConfigError("an empty pattern matches no file")
    if pattern.startswith(b"[attr]"):
        raise ConfigError(f"{quote(pattern)}: .gitattributes takes this for the definition of a macro; write \\[attr]")
    if pattern.startswith(b"!"):
        raise ConfigError(f"{quote(pattern)}: .gitattributes has no negative patterns; write \\! for a literal !")
    return pattern + b"**" if pattern.endswith(b"/") else pattern


def _written(pattern: bytes) -> bytes:
    return c_quote(pattern) if _NEEDS_QUOTES.search(pattern) else pattern


def _append(text: bytes, lines: list[bytes]) -> bytes:
    """Add lines with the line ends that the text has."""
    if not lines:
        return text
    end = b"\r\n" if b"\r\n" in text else b"\n"
    gap = end if text.removeprefix(_BOM) and not text.endswith(b"\n") else b""
    return text + gap + b"".join(line + end for line in lines)

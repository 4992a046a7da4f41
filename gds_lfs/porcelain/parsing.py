"""`git datasets parse`: does this dataset load, as it is staged or in a commit, for somebody else?

Nothing outside a scratch folder is changed. What runs is code that the user asks to be run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import ConfigError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import child
from gds_lfs.porcelain.checking import FUNCTIONS, PREPROCESS, ROWS, SAMPLES, Check, Scope
from gds_lfs.porcelain.drafting import Drafting
from gds_lfs.porcelain.layout import staged_as
from gds_lfs.porcelain.tracking import Registration, folder_of, registrations

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.dataset.parse.result import Result
    from gds_lfs.porcelain.workspace import Workspace

LEAP_YAML = b"leap.yaml"
FIRST_ROWS = 100
"""So many rows of a new ingest go on to derived fields and handlers, unless all are asked for."""


class Options(NamedTuple):
    """How much is looked at."""

    samples: int = 1
    full: bool = False


def parse(workspace: Workspace, path: str | None, rev: str | None, options: Options) -> Result:
    """Parse what is staged, or the commit `rev`. Raises ConfigError when there is nothing to parse, or too much."""
    workspace.repo.work_tree  # noqa: B018 - says so where there is none
    with child.scratch_folder(workspace) as scratch:
        scope = scope_of(workspace, rev, scratch)
        subject = _subject(workspace, path, scope)
        if rev is None:
            _say_unstaged(workspace, subject)
        if subject.rpartition(b"/")[2] == LEAP_YAML:
            from gds_lfs.porcelain.leap_checking import parse_leap

            return parse_leap(workspace, subject, scope, scratch, options.samples)
        registration = _registration(workspace, subject, scope)
        return parse_dataset(workspace, registration, scope, scratch, options)


def scope_of(workspace: Workspace, rev: str | None, scratch: Path) -> Scope:
    """The files that are staged, or those of a commit."""
    index = None if rev is None else staged_as(workspace, rev, scratch)
    return Scope(index, list(workspace.repo.staged(index=index)), rev)


def parse_dataset(
    workspace: Workspace, registration: Registration, scope: Scope, scratch: Path, options: Options
) -> Result:
    """Parse one `index.py`. Raises LockedError and the like; what the code does wrong is in the result."""
    check = Check(workspace, registration.index, scope, scratch)
    sources = child.staged_sources(workspace, scope.index)
    entry = child.require_source(sources, registration.index)
    if not check.first_stages():
        for name, needs in ((FUNCTIONS, "environment"), (ROWS, FUNCTIONS), (PREPROCESS, ROWS), (SAMPLES, PREPROCESS)):
            check.engine.stage(name, str, (needs,))
        return check.engine.finish()
    files = Drafting(workspace, registration, scope.index, scratch, frozen=scope.rev is not None)
    with check.sandbox(sources) as sandbox:

        def functions() -> str:
            check.declare()
            return check.engine.functions()

        def rows() -> str:
            limit = None if options.full else FIRST_ROWS
            return check.rows(
                lambda: files.draft(sandbox, sources, entry, files.current_database(), limit=limit), files
            )

        check.engine.stage(FUNCTIONS, functions)
        check.engine.stage(ROWS, rows, (FUNCTIONS,))
        check.engine.stage(PREPROCESS, check.preprocess, (ROWS,))
        check.engine.stage(SAMPLES, lambda: check.samples(options.samples), (PREPROCESS,))
    return check.engine.finish()


def _say_unstaged(workspace: Workspace, subject: bytes) -> None:
    folder = b":(top,glob)" + subject[: subject.rfind(b"/") + 1] + b"**/*.py"
    changed = workspace.repo.run("diff", "--name-only", "-z", "--", b":(top,literal)" + subject, folder, check=False)
    names = [quote(name) for name in changed.split(b"\0") if name]
    if names:
        have = "has" if len(names) == 1 else "have"
        workspace.messages.warn(f"{', '.join(names[:3])} {have} changes that are not staged; the staged text counts")


def _subject(workspace: Workspace, path: str | None, scope: Scope) -> bytes:
    """The file that says what is to be parsed: a Python file, or a leap.yaml. Raises ConfigError."""
    paths = {entry.path for entry in scope.entries if entry.stage == 0}
    known = [each.index for each in _known(workspace, scope)]
    leaps = sorted(each for each in paths if each.rpartition(b"/")[2] == LEAP_YAML)
    where = "staged" if scope.rev is None else f"in {scope.rev}"
    if path is not None:
        named = workspace.repo.relative(path)
        if named in paths:
            return named
        within = named + b"/" if named else b""
        found = _in_folder(within, [*known, *leaps]) or _in_folder(
            within, [within + b"index.py"] if within + b"index.py" in paths else []
        )
        if not found:
            raise ConfigError(_no_such_dataset(path, where, scope))
    else:
        found = _in_folder(workspace.repo.prefix, [*known, *leaps]) or [*known, *leaps]
        if not found:
            raise ConfigError(f"no dataset is {where} here; name its file: git datasets parse FILE")
    if len(found) > 1:
        names = ", ".join(map(quote, found))
        raise ConfigError(f"which one? {names}; name it: git datasets parse {quote(found[0])}")
    return found[0]


def _no_such_dataset(path: str, where: str, scope: Scope) -> str:
    way = " (git datasets new, git add)" if scope.rev is None else ""
    return f"{path}: no such dataset is {where}{way}; name an index.py, or a folder with one or with a leap.yaml"


def _in_folder(folder: bytes, files: list[bytes]) -> list[bytes]:
    """Those of the files that lie directly in a folder, which ends with a slash unless it is the top."""
    return [file for file in dict.fromkeys(files) if file[: file.rfind(b"/") + 1] == folder]


def _known(workspace: Workspace, scope: Scope) -> list[Registration]:
    if scope.rev is not None:
        return registrations(workspace, scope.rev)
    return list({each.index: each for each in [*registrations(workspace), *registrations(workspace, ":")]}.values())


def _registration(workspace: Workspace, index: bytes, scope: Scope) -> Registration:
    """The dataset of a Python file; one that nobody tracks yet has the usual database."""
    from gds_lfs.dataset.schema import DEFAULT_SQL_FILE

    usual = Registration(index, folder_of(os.fsdecode(index)) + DEFAULT_SQL_FILE.encode())
    return next((each for each in _known(workspace, scope) if each.index == index), usual)

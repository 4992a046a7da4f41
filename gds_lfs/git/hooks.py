"""Hooks: installed beside what is there, found again, taken away.

A hook of somebody else is renamed to `<name>.before-datasets` and called by ours. A hooks folder that belongs
to somebody else (core.hooksPath from the user's or system's config, or a folder with tracked or generated
files) is never written: the report has the lines to paste instead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git.config import Settings
from gds_lfs.git.hook_text import BEFORE_SUFFIX, FRAMEWORK, NAMES, calls_us, is_edited, is_ours, line, render

if TYPE_CHECKING:
    from gds_lfs.git.repo import Repo

__all__ = ["NAMES", "Report", "install", "status", "uninstall"]

# where the pre-commit framework keeps the hook that it found in its place, and calls it from
_LEGACY_SUFFIX = ".legacy"


@dataclass
class Report:
    """The hooks of a repository, by name, after a command.

    `folder` is where git looks for them; `reason` says why nothing may be written there. `current` run our
    program, `changed` were written or removed just now, `edited` are ours with changes of the user's and were
    left alone, `missing` do not run our program. `paste` has a line for each hook that the user must add to a
    file, by its path.
    """

    folder: Path
    reason: str | None = None
    current: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    paste: dict[Path, str] = field(default_factory=dict)


def install(repo: Repo, program: list[str]) -> Report:
    """Write every hook that is missing or has an older text of ours. `program` is an absolute command.

    Raises ConfigError when the hooks folder cannot be written.
    """
    report = _report(repo)
    for name in NAMES:
        place = _place(report.folder, name)
        text = _read(place)
        wanted = render(name, program)
        if (text == wanted and os.access(place, os.X_OK)) or (
            text is not None and calls_us(name, text) and not is_ours(text)
        ):
            report.current.append(name)
        elif text is not None and is_edited(text):
            report.edited.append(name)
        elif report.reason is not None or (_is_foreign(text) and os.path.lexists(_before(place, name))):
            report.missing.append(name)
            report.paste[_paste_target(report.folder, name)] = line(name, _to_paste(repo, report.folder, program))
        else:
            _install_one(place, name, text, wanted)
            report.current.append(name)
            report.changed.append(name)
    return report


def uninstall(repo: Repo) -> Report:
    """Remove the hooks that are ours and not edited, and put back those from before.

    Raises ConfigError when the hooks folder cannot be written.
    """
    report = _report(repo)
    for name in NAMES:
        place = _place(report.folder, name)
        text = _read(place)
        if text is None or not is_ours(text):
            report.missing.append(name)
        elif is_edited(text):
            report.edited.append(name)
        else:
            _uninstall_one(place, name)
            report.changed.append(name)
            report.missing.append(name)
    return report


def status(repo: Repo) -> Report:
    """Which hooks run our program; nothing is written."""
    report = _report(repo)
    for name in NAMES:
        place = _place(report.folder, name)
        text = _read(place)
        if text is not None and is_edited(text):
            report.edited.append(name)
        elif text is not None and (is_ours(text) or calls_us(name, text)) and os.access(place, os.X_OK):
            report.current.append(name)
        else:
            report.missing.append(name)
    return report


def _report(repo: Repo) -> Report:
    return Report(repo.hooks_path, _not_ours(repo, repo.hooks_path))


def _not_ours(repo: Repo, folder: Path) -> str | None:
    """Why the hooks folder is somebody else's; None when we may write there."""
    # git is only asked where the answer matters: this runs at the end of every filter
    scope = None if _lies_in(folder, repo.common_dir) else Settings.read(repo).scope("core.hooksPath")
    if scope is None:
        return None
    if scope not in ("local", "worktree"):
        return f"core.hooksPath is {folder} in the {scope} config, which other repositories share"
    if folder.exists() and not folder.is_dir():
        return f"core.hooksPath is {folder}, which is no folder"
    if repo.top is not None and _lies_in(folder, repo.top):
        inside = repo.relative(os.fspath(folder))
        # a tool that generates its hooks folder (husky's is .husky/_) keeps it ignored, beside tracked files
        ignored = repo.run("check-ignore", "-z", "--stdin", input=inside + b"/pre-commit\0", check=False)
        if ignored:
            return f"the hooks folder {folder} is generated by another tool"
        if any(True for _ in repo.staged([inside])):
            return f"the hooks folder {folder} is tracked in this repository"
    return None


def _lies_in(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _place(folder: Path, name: str) -> Path:
    """The file that holds our hook, or should: usually `<name>`."""
    target = _paste_target(folder, name)
    if target.parent != folder and _runs_us(target, name):
        return target
    legacy = folder / (name + _LEGACY_SUFFIX)
    text = _read(legacy)
    return legacy if text is not None and is_ours(text) else folder / name


def _runs_us(path: Path, name: str) -> bool:
    text = _read(path)
    return text is not None and calls_us(name, text)


def _paste_target(folder: Path, name: str) -> Path:
    """The file to paste into: husky's generated stubs run the file of the same name one folder up."""
    return folder.parent / name if folder.name == "_" else folder / name


def _to_paste(repo: Repo, folder: Path, program: list[str]) -> list[str]:
    """The program for a line to paste: files of the work tree travel, so they cannot name a place on this machine."""
    travels = repo.top is not None and _lies_in(folder, repo.top) and not _lies_in(folder, repo.common_dir)
    return ["git", "datasets"] if travels else program


def _before(place: Path, name: str) -> Path:
    return place.with_name(name + BEFORE_SUFFIX)


def _is_foreign(text: bytes | None) -> bool:
    return text is not None and not is_ours(text)


def _read(path: Path) -> bytes | None:
    """The text of a hook; None when there is none, empty for what cannot be read as a file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b"" if path.is_symlink() else None
    except OSError:
        return b"" if os.path.lexists(path) else None


def _install_one(place: Path, name: str, text: bytes | None, wanted: bytes) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if _is_foreign(text):
            place.rename(_before(place, name))
        _write(place, wanted)
    except OSError as error:
        raise ConfigError(f"the hook {place} cannot be written: {error.strerror}") from error


def _uninstall_one(place: Path, name: str) -> None:
    before = _before(place, name)
    try:
        if place.name.endswith(_LEGACY_SUFFIX) and FRAMEWORK in (_read(before) or b""):
            before.unlink()  # an older copy of the hook that calls this place: it would call itself
        if os.path.lexists(before):
            before.replace(place)
        else:
            place.unlink()
    except OSError as error:
        raise ConfigError(f"the hook {place} cannot be removed: {error.strerror}") from error


def _write(place: Path, text: bytes) -> None:
    """Write an executable file in one step; the umask decides who may run it."""
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o777), "wb") as file:
        file.write(text)
    fresh.replace(place)

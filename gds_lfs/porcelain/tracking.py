"""`git datasets track`, `untrack` and `new`: what the tracked text files say.

A pattern is one line of `.gitattributes`. A dataset is a section of `.datasetsconfig` that names its database, plus
the attributes of that database and of one folder for each File field, plus ignore rules for SQLite's sidecars.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError
from gds_lfs.git import attributes
from gds_lfs.git.config import DATASETS_CONFIG, write_datasetsconfig
from gds_lfs.git.paths import quote
from gds_lfs.porcelain.install import ensure_installed, install_hooks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gds_lfs.porcelain.workspace import Workspace

TEMPLATE = '''\
"""The dataset. Commit this file, and its data follows: `git commit index.py`."""

from gds_lfs import File, dataset, ingest, jpg, png


@dataset
class Dataset:
    image: File[png | jpg]
    label: str

    @ingest
    def load():
        # One list for each field, in the order above. Called when this function is new or has changed;
        # rows that are there already are not added twice.
        images = []
        labels = []
        return images, labels

    # A field computed from others, for every row:
    #
    # def size(image: File[png | jpg]) -> int:
    #     return len(image.read_bytes())
'''

TEMPLATE_FILES = ("image",)
"""The File fields of `TEMPLATE`, which its first commit forgets where they were not kept."""


@dataclass(frozen=True)
class Registration:
    """A dataset's place in a repository: its Python file and its database, as git paths."""

    index: bytes
    database: bytes

    @property
    def folder(self) -> bytes:
        """The dataset's folder with its slash, or nothing at the top."""
        return self.index[: self.index.rfind(b"/") + 1]

    def field_folder(self, field: str) -> bytes:
        return self.folder + field.encode()

    def attribute_patterns(self, file_fields: Sequence[str]) -> list[bytes]:
        """The lines of the root .gitattributes that cover this dataset."""
        return [self.pattern(self.database), *(self.folder_pattern(self.field_folder(f)) for f in file_fields)]

    def folder_pattern(self, folder: bytes) -> bytes:
        """The pattern of all files in a field's folder."""
        return self.pattern(folder) + b"/**"

    @staticmethod
    def pattern(path: bytes) -> bytes:
        """The pattern of one file at this path."""
        return b"/" + attributes.literal(path).removeprefix(b"/")

    @property
    def ignore_patterns(self) -> list[bytes]:
        """SQLite's sidecars, and the names under which they are set aside."""
        return [self.pattern(self.database) + suffix for suffix in (b"-wal*", b"-shm*", b"-journal*")]


def registrations(workspace: Workspace, source: str | None = None) -> list[Registration]:
    """The datasets that `.datasetsconfig` names, in the work tree, the index (":") or a tree."""
    return [
        Registration(os.fsencode(index), folder_of(index) + os.fsencode(database))
        for index, database in workspace.shared_config(source).sql_files.items()
    ]


def folder_of(index: str) -> bytes:
    return os.fsencode(index[: index.rfind("/") + 1])


def track(workspace: Workspace, patterns: Sequence[str], *, filename: bool = False) -> None:
    """Track patterns, or datasets where an argument is a Python file. Raises ConfigError, DatasetError."""
    repo = workspace.repo
    top = repo.work_tree
    ensure_installed(workspace)
    install_hooks(workspace)
    plain = []
    for pattern in patterns:
        if pattern.endswith(".py") and not filename:
            _track_dataset(workspace, repo.relative(pattern))
        else:
            plain.append(_pattern_of(workspace, pattern, filename=filename))
    if plain:
        folder = repo.absolute(repo.prefix) if repo.prefix else os.fsencode(top)
        file = Path(os.fsdecode(os.path.join(folder, b".gitattributes")))
        if rewrite(file, lambda text: attributes.ensure(text, plain)):
            workspace.messages.note(f"tracking {' '.join(map(quote, plain))}; next: git add .gitattributes")
        else:
            workspace.messages.note(f"already tracking {' '.join(map(quote, plain))}")


def _pattern_of(workspace: Workspace, argument: str, *, filename: bool) -> bytes:
    """The pattern for the .gitattributes of the folder the user stands in. Raises ConfigError for one outside it."""
    repo = workspace.repo
    if filename:
        path = repo.relative(argument)
        if not path.startswith(repo.prefix) or path == repo.prefix:
            raise ConfigError(f"{argument} is not below this folder: run this where it is, or at the top")
        return attributes.literal(path[len(repo.prefix) :])
    if argument.startswith("../"):
        raise ConfigError(f"{argument}: a pattern cannot leave its folder: run this where it starts, or at the top")
    # git knows no ./ here, and what a shell completes may begin with it
    return os.fsencode(argument.removeprefix(".") if argument.startswith("./") else argument)


def untrack(workspace: Workspace, patterns: Sequence[str]) -> None:
    """Remove our lines for these patterns; files that are pointers in git stay so until they are added again."""
    repo = workspace.repo
    datasets = [repo.relative(pattern) for pattern in patterns if pattern.endswith(".py")]
    for index in datasets:
        _untrack_dataset(workspace, index)
    patterns = [pattern for pattern in patterns if not pattern.endswith(".py")]
    if datasets and not patterns:
        return
    folder = repo.absolute(repo.prefix) if repo.prefix else os.fsencode(repo.work_tree)
    file = Path(os.fsdecode(os.path.join(folder, b".gitattributes")))
    wanted = [_pattern_of(workspace, pattern, filename=False) for pattern in patterns]
    wanted += [attributes.literal(pattern) for pattern in wanted]
    if not rewrite(file, lambda text: attributes.remove(text, wanted)):
        raise ConfigError(f"{file.name} has no line of ours for {' '.join(patterns)}; `git datasets track` lists them")
    workspace.messages.note(
        f"no longer tracking {' '.join(patterns)}. Files committed as pointers stay pointers in git until they are "
        f"added again:\n  git add --renormalize . && git commit"
    )


def _untrack_dataset(workspace: Workspace, index: bytes) -> None:
    """Commits no longer reconcile this dataset; its database and files stay as they are. Raises ConfigError."""
    name = quote(index)
    if index not in {registration.index for registration in registrations(workspace)}:
        raise ConfigError(f"{name} is no dataset of .datasetsconfig; `git datasets status` lists them")
    write_datasetsconfig(workspace.repo, f"dataset.{os.fsdecode(index)}.sqlfile", None)
    workspace.repo.run("add", "--", DATASETS_CONFIG)
    workspace.messages.note(
        f"commits leave the data of {name} alone from now on; staged .datasetsconfig. Its database and files stay, "
        f"and are yours to `git rm`"
    )


def tracked_patterns(workspace: Workspace) -> list[str]:
    """The patterns of the root .gitattributes that are ours."""
    file = workspace.repo.work_tree / ".gitattributes"
    return [os.fsdecode(p) for p in attributes.patterns(file.read_bytes())] if file.is_file() else []


def new(workspace: Workspace, name: str) -> None:
    """Write a commented `index.py` to start from, and track it. An existing file is never overwritten."""
    if not name.endswith(".py"):
        raise ConfigError(f"a dataset is declared in a Python file: git datasets new {name}.py, or {name}/index.py")
    path = workspace.repo.relative(name)
    file = Path(os.fsdecode(workspace.repo.absolute(path)))
    if file.exists():
        raise ConfigError(f"{quote(path)} exists already; to track it as it is: git datasets track {quote(path)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TEMPLATE, encoding="utf-8")
    workspace.messages.note(f"wrote {quote(path)}")
    track(workspace, [name])


def _track_dataset(workspace: Workspace, index: bytes) -> None:
    from gds_lfs.porcelain.child import declare_on_disk

    repo = workspace.repo
    if not os.path.isfile(repo.absolute(index)):
        raise ConfigError(f"{quote(index)} is not there; `git datasets new {quote(index)}` writes one to start from")
    declaration = declare_on_disk(workspace, index)
    registration = Registration(index, folder_of(os.fsdecode(index)) + declaration.sql_file.encode())
    write_datasetsconfig(repo, f"dataset.{os.fsdecode(index)}.sqlfile", declaration.sql_file)
    if declaration.remote:
        write_datasetsconfig(repo, "datasets.remote", declaration.remote)
        workspace.confirm(declaration.remote)
    patterns = registration.attribute_patterns(declaration.file_fields())
    rewrite(repo.work_tree / ".gitattributes", lambda text: attributes.ensure(text, patterns))
    rewrite(repo.work_tree / ".gitignore", lambda text: attributes.ensure_ignored(text, registration.ignore_patterns))
    repo.run("add", "--", ".gitattributes", ".gitignore", ".datasetsconfig", b":(top,literal)" + index)
    name = quote(index)
    workspace.messages.note(
        f"tracking the dataset of {name}; staged {name}, .gitattributes, .gitignore and .datasetsconfig\n"
        f"git datasets: next: git commit {name}"
    )


def rewrite(file: Path, edit: object) -> bool:
    """Apply an edit of bytes to a text file (absent counts as empty); True if that changed it."""
    assert callable(edit)
    old = file.read_bytes() if file.exists() else b""
    text = edit(old)
    if text == old:
        return False
    file.write_bytes(text)
    return True

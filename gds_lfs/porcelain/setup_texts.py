"""The tracked text files that go with a dataset, brought up to date in the commit that needs them.

`.gitattributes` gets a line for the database and one for each File field's folder, `.gitignore` the sidecars,
`.datasetsconfig` the remote that `index.py` names. The user's own edits of these files that are not staged stay
unstaged: the same lines are edited in the staged text and in the work tree's.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.git import attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.porcelain.tracking import Registration
    from gds_lfs.porcelain.workspace import Workspace


@dataclass(frozen=True)
class TextEdit:
    """One text file: what the commit gets, what the real index is to hold, the work tree's text before and after."""

    path: bytes
    staged: bytes
    indexed: bytes
    before: bytes | None
    after: bytes


def edits(
    workspace: Workspace,
    registration: Registration,
    declaration: Declaration,
    former: set[bytes],
    index: Path | None,
) -> list[TextEdit]:
    """The edits this declaration needs; `former` are the folders of fields that it no longer has."""
    patterns = registration.attribute_patterns(declaration.file_fields())
    gone = [registration.folder_pattern(folder) for folder in former]
    settings = {f"dataset.{os.fsdecode(registration.index)}.sqlfile": declaration.sql_file}
    if declaration.remote:
        settings["datasets.remote"] = declaration.remote
        workspace.confirm(declaration.remote)

    def config(text: bytes) -> bytes:
        for key, value in settings.items():
            text = with_setting(workspace, text, key, value)
        return text

    wanted = {
        b".gitattributes": lambda text: attributes.ensure(attributes.remove(text, gone), patterns),
        b".gitignore": lambda text: attributes.ensure_ignored(text, registration.ignore_patterns),
        b".datasetsconfig": config,
    }
    found = (_edit(workspace, path, edit, index) for path, edit in wanted.items())
    return [edit for edit in found if edit is not None]


def with_setting(workspace: Workspace, text: bytes, key: str, value: str) -> bytes:
    """A text in git's config syntax with one value set, by git itself."""
    with tempfile.TemporaryDirectory(dir=workspace.scratch) as folder:
        file = Path(folder) / "config"
        file.write_bytes(text)
        if workspace.repo.run("config", "-f", str(file), "--get-all", key, check=False).decode() == value + "\n":
            return text
        workspace.repo.run("config", "-f", str(file), "--replace-all", key, value)
        return file.read_bytes()


def _edit(workspace: Workspace, path: bytes, edit: Callable[[bytes], bytes], index: Path | None) -> TextEdit | None:
    committing = _staged_text(workspace, path, index)
    # `git commit index.py` shows a hook HEAD and index.py alone: what `track` staged is in the real index.
    real = _staged_text(workspace, path, workspace.repo.git_dir / "index")
    staged = edit(committing if committing is not None else real or b"")
    file = workspace.repo.work_tree / os.fsdecode(path)
    before = file.read_bytes() if file.is_file() else None
    after = edit(before if before is not None else staged)
    if staged == committing and after == before:
        return None
    return TextEdit(path, staged, edit(real) if real is not None else staged, before, after)


def _staged_text(workspace: Workspace, path: bytes, index: Path | None) -> bytes | None:
    entries = list(workspace.repo.staged([path], index))
    return dict(workspace.repo.blobs([entries[0].sha])).get(entries[0].sha) if entries else None

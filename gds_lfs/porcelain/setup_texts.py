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
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.git import attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gds_lfs.dataset.declaration import Declaration
    from gds_lfs.porcelain.journal import Placed
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


class Setup(NamedTuple):
    """One dataset's needs: its place and its declaration, and the patterns it no longer needs."""

    registration: Registration
    declaration: Declaration
    former: tuple[bytes, ...] = ()


def edits(
    workspace: Workspace, setups: Sequence[Setup], index: Path | None, earlier: Sequence[Placed] = ()
) -> list[TextEdit]:
    """The edits that these datasets need. `earlier` are entries of the real index that are to be taken back."""
    undone = {(each.path, each.now.sha): each.before.sha if each.before else None for each in earlier}
    settings = {}
    for each in setups:
        settings[f"dataset.{os.fsdecode(each.registration.index)}.sqlfile"] = each.declaration.sql_file
        if each.declaration.remote:
            settings["datasets.remote"] = each.declaration.remote
            workspace.confirm(each.declaration.remote)

    def attributed(text: bytes) -> bytes:
        for each in setups:
            patterns = each.registration.attribute_patterns(each.declaration.file_fields())
            text = attributes.ensure(attributes.remove(text, each.former), patterns)
        return text

    def ignored(text: bytes) -> bytes:
        return attributes.ensure_ignored(text, [line for each in setups for line in each.registration.ignore_patterns])

    def config(text: bytes) -> bytes:
        for key, value in settings.items():
            text = with_setting(workspace, text, key, value)
        return text

    wanted = {b".gitattributes": attributed, b".gitignore": ignored, b".datasetsconfig": config}
    found = (_edit(workspace, path, edit, index, undone) for path, edit in wanted.items())
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


def _edit(
    workspace: Workspace,
    path: bytes,
    edit: Callable[[bytes], bytes],
    index: Path | None,
    undone: Mapping[tuple[bytes, bytes], bytes | None],
) -> TextEdit | None:
    committing = _text(workspace, _staged(workspace, path, index))
    # `git commit index.py` shows a hook HEAD and index.py alone: what `track` staged is in the real index.
    sha = _staged(workspace, path, workspace.repo.git_dir / "index")
    real = _text(workspace, undone.get((path, sha), sha) if sha else None)
    staged = edit(committing if committing is not None else real or b"")
    file = workspace.repo.work_tree / os.fsdecode(path)
    before = file.read_bytes() if file.is_file() else None
    after = edit(before if before is not None else staged)
    if staged == committing and after == before:
        return None
    return TextEdit(path, staged, edit(real) if real is not None else staged, before, after)


def _staged(workspace: Workspace, path: bytes, index: Path | None) -> bytes | None:
    return next((entry.sha for entry in workspace.repo.staged([path], index)), None)


def _text(workspace: Workspace, sha: bytes | None) -> bytes | None:
    return dict(workspace.repo.blobs([sha])).get(sha) if sha else None

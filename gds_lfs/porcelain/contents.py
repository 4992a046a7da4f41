"""Contents that reconciling reads: from the work tree, from the store, or fetched."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY, Oid, oid_of_file
from gds_lfs.errors import DatasetError, MissingObjectError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain.checkout import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gds_lfs.porcelain.workspace import Workspace


class Contents:
    """Where contents come from; copies are made in a scratch folder."""

    def __init__(self, workspace: Workspace, scratch: Path) -> None:
        self._workspace = workspace
        self._scratch = scratch
        self._fetched: set[str] = set()

    def pieces(self, name: str, oid: Oid) -> Iterator[bytes]:
        """A content from the store, fetched when it is not there. Raises MissingObjectError."""
        if oid == EMPTY:
            return iter(())
        if not self._workspace.store.has(oid):
            from gds_lfs.porcelain.sync import fetch_objects

            if oid not in fetch_objects(self._workspace, {oid: name}).fetched:
                raise MissingObjectError(f"{name}: its data is neither here nor on the remote", oid)
        return self._workspace.store.pieces(oid)

    def database(self, name: str, oid: Oid) -> Path:
        """A copy of a database."""
        return self._copy(self._scratch / f"{oid.hex()}.sqlite", name, oid)

    @contextmanager
    def inputs(self, folder: bytes, database: Path | None) -> Iterator[Callable[[str, Oid], Path]]:
        """How a transform gets the file of a row of the dataset in `folder`: the work tree's if it has that content,
        else a copy from the store. A file of the work tree that a failing transform damaged is mended.
        """
        lent: dict[Path, Oid] = {}

        def materialise(relative: str, oid: Oid) -> Path:
            path = folder + os.fsencode(relative)
            on_disk = Path(os.fsdecode(self._workspace.repo.absolute(path)))
            if on_disk.is_file() and oid_of_file(on_disk) == oid:
                lent[on_disk] = oid
                return on_disk
            if oid != EMPTY and not self._workspace.store.has(oid):
                self._fetch_field(database, relative.partition("/")[0])
            return self._copy(self._scratch / "inputs" / relative, quote(path), oid)

        try:
            yield materialise
        except DatasetError:
            for on_disk, oid in lent.items():
                if self._workspace.store.has(oid) and not (on_disk.is_file() and oid_of_file(on_disk) == oid):
                    replace(os.fsencode(on_disk), self._workspace.store.pieces(oid))
            raise

    def _copy(self, copy: Path, name: str, oid: Oid) -> Path:
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            replace(os.fsencode(copy), self.pieces(name, oid))
        return copy

    def _fetch_field(self, database: Path | None, field: str) -> None:
        """Fetch what is absent of a field in one go: a transform that needs one file of it needs them all."""
        if field in self._fetched:
            return
        self._fetched.add(field)
        from gds_lfs.dataset.database import files
        from gds_lfs.porcelain.sync import fetch_objects

        named = {each.oid: each.path for each in files(database) if each.path.startswith(field + "/")}
        fetch_objects(self._workspace, {oid: named[oid] for oid in self._workspace.store.missing(set(named))})

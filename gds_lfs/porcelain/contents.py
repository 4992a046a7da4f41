"""Contents that reconciling reads: from the work tree, from the store, or fetched."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.content.hashing import EMPTY, Oid, oid_of_file
from gds_lfs.errors import DatasetError, MissingObjectError
from gds_lfs.git.paths import quote
from gds_lfs.porcelain.checkout import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gds_lfs.porcelain.workspace import Workspace


class Contents:
    """Where contents come from; copies are made in a scratch folder."""

    def __init__(self, workspace: Workspace, scratch: Path) -> None:
        self.workspace = workspace
        self.scratch = scratch
        self._fetched: set[str] = set()

    def pieces(self, name: str, oid: Oid) -> Iterator[bytes]:
        """A content from the store, fetched when it is not there. Raises MissingObjectError."""
        if oid == EMPTY:
            return iter(())
        if not self.workspace.store.has(oid):
            from gds_lfs.porcelain.fetching import fetch_objects

            if oid not in fetch_objects(self.workspace, {oid: name}).fetched:
                raise MissingObjectError(f"{name}: its data is neither here nor on the remote", oid)
        return self.workspace.store.pieces(oid)

    def database(self, name: str, oid: Oid) -> Path:
        """A copy of a database."""
        return self._copy(self.scratch / f"{oid.hex()}.sqlite", name, oid)

    @contextmanager
    def inputs(self, folder: bytes, database: Path | None) -> Iterator[Callable[[str, Oid], Path]]:
        """How a transform gets the file of a row of the dataset in `folder`: the work tree's if it has that content,
        else a copy from the store. A file of the work tree that a failing transform damaged is mended.
        """
        lent: dict[Path, Oid] = {}

        def materialise(relative: str, oid: Oid) -> Path:
            path = folder + os.fsencode(relative)
            on_disk = Path(os.fsdecode(self.workspace.repo.absolute(path)))
            if on_disk.is_file() and oid_of_file(on_disk) == oid:
                lent[on_disk] = oid
                return on_disk
            if oid != EMPTY and not self.workspace.store.has(oid):
                self._fetch_field(database, relative.partition("/")[0])
            return self._copy(self.scratch / "inputs" / relative, quote(path), oid)

        try:
            yield materialise
        except DatasetError:
            for on_disk, oid in lent.items():
                if self.workspace.store.has(oid) and not (on_disk.is_file() and oid_of_file(on_disk) == oid):
                    replace(os.fsencode(on_disk), self.workspace.store.pieces(oid))
            raise

    def row_files(self, folder: bytes, database: Path, placed: Mapping[str, Path]) -> RowFiles:
        """The files of a database's rows, for code that reads rows."""
        return RowFiles(self, folder, database, placed)

    def copy(self, relative: str, oid: Oid) -> Path | None:
        """A copy of a row's file from the store; None when its data is not there."""
        if oid != EMPTY and not self.workspace.store.has(oid):
            return None
        return self._copy(self.scratch / "inputs" / relative, relative, oid)

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
        from gds_lfs.porcelain.fetching import fetch_objects

        named = {each.oid: each.path for each in files(database) if each.path.startswith(field + "/")}
        fetch_objects(self.workspace, {oid: named[oid] for oid in self.workspace.store.missing(set(named))})


class RowFiles:
    """Where the files of a database's rows are, by their path in the dataset's `folder`; nothing is fetched.

    A file is one of those `placed` (in the spool, not yet in the work tree), the work tree's, or a copy.
    """

    def __init__(self, contents: Contents, folder: bytes, database: Path, placed: Mapping[str, Path]) -> None:
        self._contents = contents
        self._folder = folder
        self._database = database
        self._placed = placed
        self._lent: dict[Path, tuple[str, Oid, os.stat_result]] = {}

    @cached_property
    def _oids(self) -> dict[str, Oid]:
        from gds_lfs.dataset.database import files

        return {file.path: file.oid for file in files(self._database)}

    def locate(self, relative: str) -> Path | None:
        """The file with the content of a row's file; None when its data is not on this machine."""
        path = self._folder + os.fsencode(relative)
        on_disk = Path(os.fsdecode(self._contents.workspace.repo.absolute(path)))
        oid = self._oids.get(relative)
        if oid is None:  # written by hand
            return on_disk if on_disk.is_file() else None
        found = self._placed.get(relative)
        if found is None:
            same = on_disk.is_file() and oid_of_file(on_disk) == oid
            found = on_disk if same else self._contents.copy(relative, oid)
        if found is not None and found not in self._lent:
            self._lent[found] = relative, oid, found.stat()
        return found

    def changed(self) -> list[str]:
        """The files that whoever was given them has changed. Those of the work tree are mended."""
        damaged = []
        for path, (relative, oid, before) in self._lent.items():
            if path.exists() and _same(path.stat(), before):
                continue
            damaged.append(relative)
            store = self._contents.workspace.store
            if self._contents.scratch not in path.parents and store.has(oid):
                replace(os.fsencode(path), store.pieces(oid))
        return damaged


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_size, one.st_mtime_ns) == (other.st_ino, other.st_size, other.st_mtime_ns)

from __future__ import annotations

import os
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gds_lfs.dataset import database, fingerprint, reconcile
from gds_lfs.dataset.sandbox import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from gds_lfs.dataset.reconcile import Plan, Result


class Dataset:
    """A folder with a dataset, reconciled as the porcelain does it, but without git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scratches = 0
        self.printed = b""

    @property
    def database(self) -> Path:
        return self.root / "dataset.sqlite"

    def sandbox(self, text: str, neighbours: dict[str, str] | None = None, **more: Any) -> Sandbox:
        self.scratches += 1
        spool = self.root.parent / f"scratch{self.scratches}" / "spool"
        spool.mkdir(parents=True)
        sources = {"index.py": text, **(neighbours or {})}
        return Sandbox(more.pop("python", sys.executable), self.root, "index.py", sources, spool, **more)

    def _print(self, data: bytes) -> None:
        self.printed += data

    def plan(self, text: str, neighbours: dict[str, str] | None = None, **more: Any) -> Plan:
        with self.sandbox(text, neighbours) as sandbox:
            return self._plan(sandbox, text, neighbours, **more)

    def _plan(self, sandbox: Sandbox, text: str, neighbours: dict[str, str] | None, **more: Any) -> Plan:
        agreement = fingerprint.agreement({"index.py": text, **(neighbours or {})}, "index.py")
        return reconcile.plan(sandbox.declare(), database.read_state(self.database), agreement, **more)

    def reconcile(self, text: str, neighbours: dict[str, str] | None = None, **more: Any) -> Result:
        with self.sandbox(text, neighbours, output=self._print) as sandbox:
            plan = self._plan(sandbox, text, neighbours, **more)
            assert not plan.empty
            scratch = self.root.parent / f"scratch{self.scratches}"
            result = reconcile.apply(plan, self.database, scratch, sandbox, lambda path, _oid: self.root / path)
        for placed in result.place:
            target = self.root / placed.path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(placed.source, target)
        for path in result.remove:
            (self.root / path).unlink()
        os.replace(result.database, self.database)
        assert self.files() == sorted(file.path for file in database.files(self.database))
        return result

    def files(self) -> list[str]:
        """The files in the fields' folders."""
        fields = database.read_file_fields(self.database)
        return sorted(
            path.relative_to(self.root).as_posix()
            for field in fields
            for path in (self.root / field).rglob("*")
            if path.is_file()
        )

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.database)
        with connection:
            rows = connection.execute(statement, values).fetchall()
        connection.close()
        return rows

    def column(self, *names: str) -> list[Any]:
        rows = self.sql(f"SELECT {', '.join(names)} FROM dataset ORDER BY _rowid_")
        return [row[0] for row in rows] if len(names) == 1 else rows

    def contents(self, field: str) -> list[bytes | None]:
        """What the files of a field hold, in the order of the rows."""
        return [None if path is None else (self.root / path).read_bytes() for path in self.column(field)]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    root = tmp_path / "work"
    root.mkdir()
    return Dataset(root)

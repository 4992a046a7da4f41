from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.errors import LockedError
from gds_lfs.store import catalog, pack
from gds_lfs.store.catalog import Catalog, Place

if TYPE_CHECKING:
    from pathlib import Path

A, B = oid_of(b"a"), oid_of(b"b")


@pytest.fixture
def packs(tmp_path):
    packs = tmp_path / "packs"
    packs.mkdir()
    return packs


def put(packs: Path, name: str, *contents: bytes) -> Path:
    record = pack.make_record(pack.CHUNKS, [(oid_of(content), content) for content in contents])
    path = packs / name[:2] / f"{name}.pack"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pack.PACK_HEADER + pack.encode_record(record) + pack.encode_footer([record.header.encode()]))
    return path


def ids(path: Path) -> list[bytes]:
    """All that the file lists."""
    with closing(sqlite3.connect(path)) as db:
        return [oid for (oid,) in db.execute("SELECT DISTINCT id FROM objects ORDER BY id")]


def test_it_follows_the_folder(tmp_path, packs):
    first, second = put(packs, "aa11", b"a"), put(packs, "bb22", b"a", b"bb")
    (packs / "bb" / "notes.txt").touch()
    (packs / "stray").touch()
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    assert opened.packs() == [first, second]
    assert opened.locate(pack.CHUNKS, [A])[A].path in (first, second)
    assert opened.locate(pack.CHUNKS, [oid_of(b"bb"), B]) == {oid_of(b"bb"): Place(second, 5, 133, 2)}
    assert opened.locate(pack.MANIFESTS, [A]) == {}
    second.unlink()
    opened.refresh()
    assert opened.locate(pack.CHUNKS, [A]) == {A: Place(first, 5, 95, 1)}
    assert ids(tmp_path / "catalog.sqlite") == [A]
    opened.drop_pack(first)
    assert opened.locate(pack.CHUNKS, [A]) == {}
    opened.close()


def test_two_processes_see_each_others_packs(tmp_path, packs):
    one, other = (Catalog(tmp_path / "catalog.sqlite", packs) for _ in range(2))
    stamp = other.stamp()
    path = put(packs, "aa11", b"a")
    one.refresh()
    assert other.stamp() != stamp
    assert other.locate(pack.CHUNKS, [A])[A].path == path
    other.refresh()
    assert other.packs() == [path]
    one.close()
    other.close()


def test_a_large_footer(tmp_path, packs):
    contents = [b"%d" % i for i in range(5000)]
    put(packs, "aa11", *contents)
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    assert len(opened.locate(pack.CHUNKS, map(oid_of, contents))) == 5000
    assert ids(tmp_path / "catalog.sqlite") == sorted(map(oid_of, contents))
    opened.close()


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_catalog_is_replaced(tmp_path, packs, content):
    (tmp_path / "catalog.sqlite").write_bytes(content)
    path = put(packs, "aa11", b"a")
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    assert opened.locate(pack.CHUNKS, [A])[A].path == path
    opened.close()


def test_another_version_is_replaced(tmp_path, packs):
    path = put(packs, "aa11", b"a")
    db = sqlite3.connect(tmp_path / "catalog.sqlite")
    db.executescript("CREATE TABLE objects(x); CREATE TABLE packs(y); PRAGMA user_version=7;")
    db.close()
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    assert opened.locate(pack.CHUNKS, [A])[A].path == path
    opened.close()


def test_garbage_among_the_packs_holds_nothing(tmp_path, packs):
    (packs / "aa").mkdir()
    (packs / "aa" / "aa11.pack").write_bytes(b"")
    (packs / "aa" / "aa22.pack").write_bytes(bytes(4) + b"\xff\xff\xff\x7f" + bytes(4) + b"GDSE")
    put(packs, "aa33", b"a")
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    assert ids(tmp_path / "catalog.sqlite") == [A]
    opened.close()


def test_a_locked_catalog_is_waited_for_and_then_named(tmp_path, packs, monkeypatch):
    monkeypatch.setattr(catalog, "_BUSY_SECONDS", 0.05)
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    holder = sqlite3.connect(tmp_path / "catalog.sqlite", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LockedError, match=r"catalog\.sqlite is locked"):
        opened.drop_pack(packs / "aa" / "aa11.pack")
    opened.close()
    monkeypatch.setattr(catalog, "_BUSY_SECONDS", 10)
    release = threading.Timer(0.2, holder.execute, ["ROLLBACK"])
    release.start()
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    opened.drop_pack(packs / "aa" / "aa11.pack")
    opened.close()
    release.join()
    holder.close()


def test_a_catalog_removed_while_it_is_open_is_made_anew(tmp_path, packs):
    opened = Catalog(tmp_path / "catalog.sqlite", packs)
    first = put(packs, "aa11", b"a")
    opened.refresh()
    (tmp_path / "catalog.sqlite").unlink()
    assert opened.locate(pack.CHUNKS, [A])[A].path == first
    second = put(packs, "bb22", b"b")
    opened.add_pack(second, catalog.table_of_contents(second))
    opened.close()
    again = Catalog(tmp_path / "catalog.sqlite", packs)
    assert {A, B} == again.locate(pack.CHUNKS, [A, B]).keys()
    again.close()

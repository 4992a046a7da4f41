from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gds_lfs.dataset import database
from gds_lfs.errors import DatasetError, LockedError

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Dataset

PLAIN = "from gds_lfs import dataset\n@dataset\nclass D:\n    name: str\n    age: int\n"


@pytest.fixture
def filled(dataset: Dataset) -> Dataset:
    dataset.reconcile(PLAIN)
    connection = sqlite3.connect(dataset.database)
    connection.executemany("INSERT INTO dataset(name, age) VALUES (?, ?)", [(f"n{age}", age) for age in range(2000)])
    connection.commit()
    connection.close()
    return dataset


def test_an_absent_database_has_an_empty_state(tmp_path: Path) -> None:
    assert database.read_state(None) == database.read_state(tmp_path / "x") == database.State()
    assert database.read_agreement(tmp_path / "x") is None
    assert list(database.files(tmp_path / "x")) == []
    assert not database.checkpoint(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_state(filled: Dataset) -> None:
    state = database.read_state(filled.database)
    assert [(field.name, str(field.type), field.derived) for field in state.fields] == [
        ("name", "str", False),
        ("age", "int", False),
    ]
    assert (state.rows, state.unnamed, state.stale, state.orphans) == (2000, 2000, {}, ())
    assert state.agreement == database.read_agreement(filled.database) is not None


def test_rows_that_are_gone_are_counted(filled: Dataset, tmp_path: Path) -> None:
    filled.reconcile(PLAIN)
    earlier = tmp_path / "earlier.sqlite"
    earlier.write_bytes(filled.database.read_bytes())
    assert database.count_gone(earlier, filled.database) == 0
    with sqlite3.connect(filled.database) as connection:
        connection.execute("DELETE FROM dataset WHERE age < 3")
        connection.execute("INSERT INTO dataset(name, age) VALUES ('by hand', 9)")
    connection.close()
    assert database.count_gone(earlier, filled.database) == 3
    assert database.count_rows(filled.database) == 1998
    assert database.count_gone(tmp_path / "none.sqlite", filled.database) == 0


@pytest.mark.parametrize("cut", [1, 4096, 20000])
def test_a_database_that_lost_its_end(filled: Dataset, cut: int) -> None:
    size = filled.database.stat().st_size
    os.truncate(filled.database, size - cut)
    for read in (database.read_state, database.verify):
        with pytest.raises(DatasetError, match=r"is broken \(its end is missing\); take back .* git checkout HEAD -- "):
            read(filled.database)


def test_a_page_full_of_noise(filled: Dataset) -> None:
    with filled.database.open("r+b") as file:
        file.seek(-8192, os.SEEK_END)
        file.write(os.urandom(4096))
    with pytest.raises(DatasetError, match="is broken"):
        database.verify(filled.database)


def test_a_sound_database_verifies(filled: Dataset) -> None:
    database.verify(filled.database)


@pytest.mark.parametrize("content", [b"hello", b"version git-datasets/1\n" * 40, b"SQLite format 3\0"])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dataset.sqlite"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="it is not an SQLite database"):
        database.read_state(path)


def test_a_database_of_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "dataset.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (x)")
    connection.commit()
    assert database.read_state(path) == database.State()
    connection.execute("CREATE TABLE dataset (x)")
    connection.close()
    with pytest.raises(DatasetError, match="has a table `dataset` that git datasets did not make"):
        database.read_state(path)


def test_a_database_of_a_newer_version(filled: Dataset) -> None:
    filled.sql("UPDATE _datasets_meta SET value = '2' WHERE key = 'format'")
    with pytest.raises(DatasetError, match="newer version"):
        database.read_state(filled.database)


def test_a_type_of_a_newer_version(filled: Dataset) -> None:
    filled.sql("UPDATE _datasets_fields SET type = 'tensor' WHERE name = 'age'")
    with pytest.raises(DatasetError, match="age: 'tensor' is no type"):
        database.read_state(filled.database)


def test_tables_changed_by_hand(filled: Dataset) -> None:
    filled.sql("DROP TABLE _datasets_fields")
    with pytest.raises(DatasetError, match=r"no such table.*if its tables were changed by hand"):
        database.read_state(filled.database)


def test_checkpoint_folds_in_what_an_open_connection_left_in_the_wal(filled: Dataset, tmp_path: Path) -> None:
    connection = sqlite3.connect(filled.database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("INSERT INTO dataset(name, age) VALUES ('late', 1)")
    connection.commit()
    assert database.checkpoint(filled.database)
    (tmp_path / "alone.sqlite").write_bytes(filled.database.read_bytes())
    assert database.read_state(tmp_path / "alone.sqlite").rows == 2001
    assert not database.checkpoint(filled.database)
    connection.close()


def test_checkpoint_that_a_reader_keeps_from_ending(filled: Dataset) -> None:
    reader = sqlite3.connect(filled.database, isolation_level=None)
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute("INSERT INTO dataset(name) VALUES ('a')")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM dataset").fetchone()
    writer = sqlite3.connect(filled.database, isolation_level=None)
    writer.execute("INSERT INTO dataset(name) VALUES ('b')")
    with pytest.raises(LockedError, match="is in use by another program"):
        database.checkpoint(filled.database, wait=0.1)
    reader.execute("COMMIT")
    assert database.checkpoint(filled.database)
    reader.close()
    writer.close()


def test_checkpoint_rolls_a_killed_transaction_back(filled: Dataset) -> None:
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1');"
        "c.execute('BEGIN'); c.execute('UPDATE dataset SET name = name || zeroblob(500)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, filled.database], check=True)
    assert filled.database.with_name("dataset.sqlite-journal").stat().st_size
    assert database.checkpoint(filled.database)
    assert not filled.database.with_name("dataset.sqlite-journal").exists()
    assert filled.column("name")[0] == "n0"


def test_a_locked_database(filled: Dataset) -> None:
    other = sqlite3.connect(filled.database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LockedError, match="is in use"), database.connect(filled.database, wait=0.1) as tables:
        tables.row_count()
    other.close()


def test_a_copy_has_the_same_pages(filled: Dataset, tmp_path: Path) -> None:
    database.copy(filled.database, tmp_path / "copy")
    one, two = filled.database.read_bytes(), (tmp_path / "copy").read_bytes()
    assert len(one) == len(two)
    assert one[4096:] == two[4096:]

"""SQLite's habits, met by git: write-ahead logs, sidecars, locks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from machines import Machine, is_clean, tree

PEOPLE = (
    'from gds_lfs import dataset\n\n\n@dataset(sql_file="dataset.sqlite")\nclass People:\n    name: str\n    age: int\n'
)


@pytest.fixture
def repo(ready: Machine) -> Path:
    origin = ready.bare()
    repo = ready.repo()
    ready.git(repo, "remote", "add", "origin", origin)
    (repo / "index.py").write_text(PEOPLE)
    ready.gd(repo, "track", "index.py")
    ready.git(repo, "commit", "-qm", "people", "index.py")
    return repo


def names(repo: Path) -> list[str]:
    database = sqlite3.connect(f"file:{repo / 'dataset.sqlite'}?mode=ro", uri=True)
    try:
        return [row[0] for row in database.execute("SELECT name FROM dataset ORDER BY name")]
    finally:
        database.close()


@pytest.mark.parametrize("how", [["-am", "x"], ["-m", "x", "dataset.sqlite"]])
def test_rows_still_in_the_wal_are_in_the_commit(ready: Machine, repo: Path, how: list[str]) -> None:
    open_elsewhere = sqlite3.connect(repo / "dataset.sqlite")
    open_elsewhere.execute("PRAGMA journal_mode=WAL")
    open_elsewhere.execute("INSERT INTO dataset (name, age) VALUES ('first', 1)")
    open_elsewhere.commit()
    open_elsewhere.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    open_elsewhere.execute("INSERT INTO dataset (name, age) VALUES ('second', 2), ('third', 3)")
    open_elsewhere.commit()
    assert (repo / "dataset.sqlite-wal").stat().st_size > 0

    ready.git(repo, "commit", "-q", *how)
    open_elsewhere.execute("INSERT INTO dataset (name, age) VALUES ('after', 4)")
    open_elsewhere.commit()
    open_elsewhere.close()
    assert names(repo) == ["after", "first", "second", "third"], "the program that has it open lost nothing"
    ready.git(repo, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert names(ready.root / "elsewhere") == ["first", "second", "third"]


def test_sidecars_are_neither_staged_nor_deleted(ready: Machine, repo: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        (repo / f"dataset.sqlite{suffix}").touch()
    ready.git(repo, "add", ".")
    assert ready.git(repo, "diff", "--cached", "--name-only").stdout == ""
    for suffix in ("-wal", "-shm", "-journal"):
        assert (repo / f"dataset.sqlite{suffix}").exists()


KILLED = """
import os, signal, sqlite3
database = sqlite3.connect("dataset.sqlite")
database.execute("PRAGMA journal_mode=WAL")
database.execute("PRAGMA wal_autocheckpoint=0")
database.execute("INSERT INTO dataset (name, age) VALUES ('from the killed one', 9)")
database.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_left_over_wal_does_not_leak_into_another_version(ready: Machine, repo: Path) -> None:
    for name in ("first", "second"):
        database = sqlite3.connect(repo / "dataset.sqlite")
        database.execute("INSERT INTO dataset (name, age) VALUES (?, 1)", (name,))
        database.commit()
        database.close()
        ready.git(repo, "commit", "-qam", name)
    subprocess.run([sys.executable, "-c", KILLED], cwd=repo, check=False)
    assert (repo / "dataset.sqlite-wal").stat().st_size > 0

    told = ready.git(repo, "reset", "--hard", "HEAD~1").stderr
    assert names(repo) == ["first"]
    aside = repo / "dataset.sqlite-wal.aside-1"
    assert aside.name in told
    assert aside.stat().st_size > 0
    assert is_clean(ready, repo)


def test_archive_leaves_a_live_database_alone(ready: Machine, repo: Path) -> None:
    live = sqlite3.connect(repo / "dataset.sqlite")
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("INSERT INTO dataset (name, age) VALUES ('live', 1)")
    live.commit()
    ready.git(repo, "archive", "-o", ready.root / "a.tar", "HEAD")
    assert (repo / "dataset.sqlite-wal").exists()
    live.execute("INSERT INTO dataset (name, age) VALUES ('more', 2)")
    live.commit()
    live.close()
    assert names(repo) == ["live", "more"]


def test_a_locked_database_refuses_the_commit_in_a_line(ready: Machine, repo: Path) -> None:
    holder = sqlite3.connect(repo / "dataset.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    (repo / "index.py").write_text(PEOPLE + "    emotion: str\n")
    refused = ready.git(repo, "commit", "-qm", "x", "index.py", check=False)
    holder.execute("ROLLBACK")
    holder.close()
    assert refused.returncode != 0
    assert "dataset.sqlite" in refused.stderr
    assert "locked" in refused.stderr
    assert ready.git(repo, "diff", "--cached", "--name-only").stdout == ""
    ready.git(repo, "commit", "-qm", "x", "index.py")
    assert is_clean(ready, repo)


def test_a_new_field_reaches_a_database_that_is_open_elsewhere(ready: Machine, repo: Path) -> None:
    live = sqlite3.connect(repo / "dataset.sqlite")
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("INSERT INTO dataset (name, age) VALUES ('live', 1)")
    live.commit()
    (repo / "index.py").write_text(PEOPLE + "    emotion: str\n")
    ready.git(repo, "commit", "-qm", "emotions", "index.py")
    live.execute("UPDATE dataset SET emotion = 'calm'")
    live.commit()
    live.close()
    assert names(repo) == ["live"]
    assert "index.py" in tree(ready, repo)
    assert ready.git(repo, "status", "--porcelain").stdout == " M dataset.sqlite\n"


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    connection.execute(line)
    print("done", flush=True)
"""


class Holder:
    """Another program with a database open. (SQLite's locks would not hold within one process that reads the file.)"""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def execute(self, statement: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(statement + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def close(self) -> None:
        self._process.communicate()


def test_a_program_in_the_middle_of_writing_loses_nothing(ready: Machine, repo: Path) -> None:
    holder = Holder(repo / "dataset.sqlite")
    holder.execute("BEGIN IMMEDIATE")
    holder.execute("INSERT INTO dataset (name, age) VALUES ('pending', 1)")
    (repo / "index.py").write_text(PEOPLE + "    emotion: str\n")
    refused = ready.git(repo, "commit", "-qm", "x", "index.py", check=False)
    assert refused.returncode != 0
    assert "in use by another program" in refused.stderr
    holder.execute("COMMIT")
    holder.close()
    ready.git(repo, "commit", "-qm", "x", "index.py")
    assert names(repo) == ["pending"]
    assert is_clean(ready, repo)


def test_a_row_written_while_index_py_runs_is_not_lost(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(
        PEOPLE.replace("import dataset", "import dataset, ingest")
        + "\n    @ingest\n    def load():\n        import sqlite3\n"
        + "        with sqlite3.connect('dataset.sqlite') as database:\n"
        + "            database.execute(\"INSERT INTO dataset (name, age) SELECT 'meanwhile', 1 WHERE NOT EXISTS\""
        + '\n                " (SELECT * FROM dataset)")\n'
        + "        return ['loaded'], [2]\n"
    )
    refused = ready.git(repo, "commit", "-qm", "x", "index.py", check=False)
    assert "dataset.sqlite was changed while index.py ran" in refused.stderr
    ready.git(repo, "commit", "-qm", "x", "index.py")
    assert names(repo) == ["loaded", "meanwhile"]
    assert is_clean(ready, repo)


def test_a_locked_database_does_not_stop_other_commits(ready: Machine, repo: Path) -> None:
    holder = Holder(repo / "dataset.sqlite")
    holder.execute("BEGIN EXCLUSIVE")
    (repo / "note.txt").write_text("a note")
    ready.git(repo, "add", "note.txt")
    ready.git(repo, "commit", "-qm", "a note")
    holder.close()


def test_rows_deleted_and_inserted_by_hand_are_committed(ready: Machine, repo: Path) -> None:
    (repo / "index.py").write_text(
        "from gds_lfs import File, any_file, dataset, ingest\n\n\n@dataset\nclass D:\n    a: File[any_file]\n"
        "\n    @ingest\n    def load():\n        return [b'one', b'two']\n"
    )
    ready.git(repo, "commit", "-qm", "files", "index.py")
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        (gone,) = database.execute("SELECT a FROM dataset LIMIT 1").fetchone()
        database.execute("DELETE FROM dataset WHERE a = ?", (gone,))
        database.execute("INSERT INTO dataset (a) VALUES (NULL)")
    database.close()
    told = ready.git(repo, "commit", "-qam", "by hand").stderr
    assert "left out" not in told
    assert "index.py: 2 rows (1 removed), 1 file removed" in told
    assert gone not in tree(ready, repo)
    assert not (repo / gone).exists()
    assert is_clean(ready, repo)
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("DELETE FROM dataset")
    database.close()
    ready.git(repo, "commit", "-qam", "all of them")
    assert [name for name in tree(ready, repo) if name.startswith("a/")] == ["a/.gitkeep"]
    assert is_clean(ready, repo)


def test_deleted_rows_are_counted_where_there_are_no_files(ready: Machine, repo: Path) -> None:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("INSERT INTO dataset (name, age) VALUES ('a', 1), ('b', 2), ('c', 3)")
    database.close()
    assert "index.py: 3 rows\n" in ready.git(repo, "commit", "-qam", "three").stderr
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("DELETE FROM dataset WHERE name = 'b'")
    database.close()
    assert "index.py: 2 rows (1 removed)\n" in ready.git(repo, "commit", "-qam", "two").stderr
    (repo / "note.txt").write_text("a note")
    ready.git(repo, "add", "note.txt")
    assert "rows" not in ready.git(repo, "commit", "-qm", "a note").stderr
    assert ready.gd(repo, "reconcile").stderr == "git datasets: index.py: nothing to do\n"
    assert is_clean(ready, repo)


def test_a_column_made_by_hand_is_named(ready: Machine, repo: Path) -> None:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        database.execute("ALTER TABLE dataset ADD COLUMN emotion TEXT")
    database.close()
    (repo / "index.py").write_text(PEOPLE + "    emotion: str\n")
    refused = ready.git(repo, "commit", "-qm", "x", "index.py", check=False)
    assert "emotion: the table has a column of this name" in refused.stderr

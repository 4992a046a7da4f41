"""The journey of a dataset, one step a test, with plain git commands and generated images."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from machines import Machine, digests, is_clean, tree

DECLARED = """\
from gds_lfs import File, dataset, ingest, jpg, png


@dataset(remote="{remote}")
class SegmentationDataset:
    image: File[png | jpg]
    segmentation: File[png]
"""

INGEST = """\

    @ingest
    def get_dataset_from_web():
        from make_images import image
        list_of_images = [image(i, 100) for i in range(20)]
        list_of_segmentations = [image(i, 7) for i in range(20)]
        return list_of_images, list_of_segmentations
"""

TRANSFORM = '''\

    def segmentation_resized(segmentation: File[png]) -> File[png]:
        """Half the size."""
        return segmentation.read_bytes() + b"resized"
'''

MAKE_IMAGES = """\
import random


def image(seed, size):
    noise = random.Random(seed * 1000 + size)
    return b"\\x89PNG\\r\\n\\x1a\\n" + noise.randbytes(size * 100)
"""


class Journey:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.origin = machine.bare()
        self.remote = machine.root / "data"
        self.repo = machine.repo()
        machine.git(self.repo, "remote", "add", "origin", self.origin)

    def write(self, *parts: str) -> None:
        text = "".join(parts).replace("{remote}", str(self.remote))
        (self.repo / "index.py").write_text(text)

    def commit(self, message: str = "a step") -> str:
        return self.machine.git(self.repo, "commit", "-m", message, "index.py").stderr

    def declared(self) -> Journey:
        self.write(DECLARED)
        self.machine.gd(self.repo, "track", "index.py")
        self.commit("declare")
        return self

    def ingested(self) -> Journey:
        self.declared()
        (self.repo / "make_images.py").write_text(MAKE_IMAGES)
        self.machine.git(self.repo, "add", "make_images.py")
        self.machine.git(self.repo, "commit", "-qm", "images", "make_images.py")
        self.write(DECLARED, INGEST)
        self.commit("ingest")
        return self

    def transformed(self) -> Journey:
        self.ingested()
        self.write(DECLARED, INGEST, TRANSFORM)
        self.commit("transform")
        return self

    def rows(self, *columns: str) -> list[tuple[object, ...]]:
        return rows(self.repo, *columns)

    def columns(self) -> list[str]:
        with sqlite3.connect(self.repo / "dataset.sqlite") as database:
            return [row[1] for row in database.execute("PRAGMA table_info(dataset)") if not row[1].startswith("_")]

    def files(self, folder: str) -> list[Path]:
        return sorted(path for path in (self.repo / folder).rglob("*") if path.is_file())


def rows(repo: Path, *columns: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        return database.execute(f"SELECT {', '.join(columns) or '*'} FROM dataset ORDER BY 1").fetchall()


@pytest.fixture
def journey(ready: Machine) -> Journey:
    return Journey(ready)


def test_track_sets_up_attributes_ignores_and_hooks(journey: Journey) -> None:
    journey.write(DECLARED)
    journey.machine.gd(journey.repo, "track", "index.py")

    check = journey.machine.git(
        journey.repo,
        "check-attr",
        "filter",
        "--",
        "dataset.sqlite",
        "image/ab/x.png",
        "segmentation/ab/x.png",
        "index.py",
    ).stdout
    assert check.count(": filter: datasets\n") == 3
    ignored = ["dataset.sqlite-wal", "dataset.sqlite-shm", "dataset.sqlite-journal"]
    assert journey.machine.git(journey.repo, "check-ignore", *ignored).stdout.split() == ignored
    for name in ("pre-commit", "post-commit", "pre-push", "post-checkout", "post-merge", "pre-merge-commit"):
        assert (journey.repo / ".git/hooks" / name).stat().st_mode & 0o111


def test_new_writes_an_index_py_that_commits(journey: Journey) -> None:
    journey.machine.gd(journey.repo, "new")
    journey.commit()

    assert {"index.py", "dataset.sqlite", ".gitattributes", ".gitignore", ".datasetsconfig"} <= set(
        tree(journey.machine, journey.repo)
    )
    assert is_clean(journey.machine, journey.repo)


def test_committing_a_declaration_creates_database_and_folders(journey: Journey) -> None:
    journey.declared()

    made = {"dataset.sqlite", "image/.gitkeep", "segmentation/.gitkeep"}
    set_up = {".gitattributes", ".gitignore", ".datasetsconfig"}
    assert set(tree(journey.machine, journey.repo)) == {"index.py"} | made | set_up
    assert journey.columns() == ["image", "segmentation"]
    assert is_clean(journey.machine, journey.repo)


def test_committing_an_ingest_brings_files_and_rows(journey: Journey) -> None:
    journey.ingested()

    assert len(journey.rows("image", "segmentation")) == 20
    for image, segmentation in journey.rows("image", "segmentation"):
        assert (journey.repo / str(image)).is_file()
        assert Path(str(image)).stem == Path(str(segmentation)).stem
    committed = tree(journey.machine, journey.repo)
    assert sum(name.startswith("image/") for name in committed) == 20
    assert sum(name.startswith("segmentation/") for name in committed) == 20
    assert is_clean(journey.machine, journey.repo)


def test_committing_again_adds_nothing(journey: Journey) -> None:
    journey.ingested()
    before = digests(journey.repo)
    journey.write(DECLARED, INGEST, "\n# a remark\n")
    journey.commit("a remark")
    after = digests(journey.repo)

    del before["index.py"], after["index.py"]
    assert after == before

    journey.write(DECLARED, INGEST.replace("range(20)", "range(10 + 10)"))
    journey.commit("the same rows from other code")
    assert len(journey.rows()) == 20
    assert is_clean(journey.machine, journey.repo)


def test_a_transform_fills_its_folder_for_every_row(journey: Journey) -> None:
    journey.transformed()

    made = journey.files("segmentation_resized")
    assert len(made) == 20
    for file in made:
        source = journey.repo / "segmentation" / file.parent.name / file.name
        assert file.read_bytes() == source.read_bytes() + b"resized"
    assert journey.columns() == ["image", "segmentation", "segmentation_resized"]
    assert is_clean(journey.machine, journey.repo)


def test_a_docstring_recomputes_nothing_and_a_body_its_column(journey: Journey) -> None:
    journey.transformed()
    stamps = {file: file.stat().st_mtime_ns for file in journey.files("segmentation_resized")}
    journey.write(DECLARED, INGEST, TRANSFORM.replace("Half the size.", "Smaller."))
    journey.commit("a docstring")
    assert {file: file.stat().st_mtime_ns for file in journey.files("segmentation_resized")} == stamps

    journey.write(DECLARED, INGEST, TRANSFORM.replace('b"resized"', 'b"shrunk"'))
    journey.commit("another body")
    assert all(file.read_bytes().endswith(b"shrunk") for file in journey.files("segmentation_resized"))
    assert is_clean(journey.machine, journey.repo)


def without_image(text: str) -> str:
    return text.replace("    image: File[png | jpg]\n", "").replace(
        "return list_of_images, list_of_segmentations", "return list_of_segmentations"
    )


@pytest.mark.parametrize("edit_ingest", [True, False])
def test_a_removed_field_takes_its_folder_and_column_and_no_more(journey: Journey, edit_ingest: bool) -> None:
    journey.transformed()
    kept = {k: v for k, v in digests(journey.repo).items() if k.startswith("segmentation")}
    ingest = without_image(INGEST) if edit_ingest else INGEST
    journey.write(without_image(DECLARED), ingest, TRANSFORM)
    journey.commit("no image")

    assert not (journey.repo / "image").exists()
    assert not [name for name in tree(journey.machine, journey.repo) if name.startswith("image/")]
    assert journey.columns() == ["segmentation", "segmentation_resized"]
    assert len(journey.rows()) == 20
    assert {k: v for k, v in digests(journey.repo).items() if k.startswith("segmentation")} == kept
    assert is_clean(journey.machine, journey.repo)


def test_reset_push_clone_and_branches_bring_all_of_it_back(journey: Journey) -> None:
    machine = journey.machine
    journey.transformed()
    full = digests(journey.repo)
    journey.write(without_image(DECLARED), without_image(INGEST), TRANSFORM)
    journey.commit("no image")
    reduced = digests(journey.repo)

    machine.git(journey.repo, "reset", "-q", "--hard", "HEAD~1")
    assert digests(journey.repo) == full
    assert is_clean(machine, journey.repo)
    machine.git(journey.repo, "reset", "-q", "--hard", "HEAD@{1}")
    assert digests(journey.repo) == reduced

    machine.git(journey.repo, "branch", "full", "HEAD~1")
    pushed = machine.git(journey.repo, "push", "-q", "origin", "main", "full")
    assert "git datasets: sent " in pushed.stderr

    machine.git(machine.root, "clone", "-q", journey.origin, "elsewhere")
    elsewhere = machine.root / "elsewhere"
    assert digests(elsewhere) == reduced
    assert is_clean(machine, elsewhere)
    machine.git(elsewhere, "checkout", "-q", "full")
    assert digests(elsewhere) == full
    assert is_clean(machine, elsewhere)
    machine.git(elsewhere, "checkout", "-q", "main")
    assert digests(elsewhere) == reduced
    assert is_clean(machine, elsewhere)
    assert (elsewhere / ".git/hooks/pre-commit").exists(), "a clone gets its hooks at its first checkout"


def test_the_plain_form_gains_and_loses_columns(journey: Journey) -> None:
    head = 'from gds_lfs import dataset\n\n\n@dataset(sql_file="dataset.sqlite")\nclass People:\n'
    journey.write(head, "    name: str\n    age: int\n")
    journey.machine.gd(journey.repo, "track", "index.py")
    journey.commit("people")
    assert journey.columns() == ["name", "age"]

    with sqlite3.connect(journey.repo / "dataset.sqlite") as database:
        database.execute("INSERT INTO dataset (name, age) VALUES ('Ada', 36), ('Alan', 41)")
    journey.machine.git(journey.repo, "commit", "-qam", "two people")
    assert journey.rows("name", "age") == [("Ada", 36), ("Alan", 41)]

    journey.write(head, "    name: str\n    age: int\n    emotion: str\n")
    assert "emotion" in journey.commit("emotions")
    assert journey.columns() == ["name", "age", "emotion"]
    assert journey.rows("name", "age", "emotion") == [("Ada", 36, None), ("Alan", 41, None)]

    journey.write(head, "    age: int\n    emotion: str\n")
    journey.commit("no names")
    assert journey.columns() == ["age", "emotion"]
    assert journey.rows("age") == [(36,), (41,)]
    assert is_clean(journey.machine, journey.repo)


def test_any_big_file_travels_with_plain_git(ready: Machine, work: Path) -> None:
    content = bytes(range(256)) * 8192
    (work / "weights.bin").write_bytes(content)
    ready.git(work, "add", "weights.bin")
    ready.git(work, "commit", "-qm", "weights")
    assert ready.git(work, "cat-file", "-s", "HEAD:weights.bin").stdout.strip() < "200"
    ready.git(work, "push", "-q", "-u", "origin", "main")
    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    assert (ready.root / "elsewhere/weights.bin").read_bytes() == content
    assert is_clean(ready, ready.root / "elsewhere")

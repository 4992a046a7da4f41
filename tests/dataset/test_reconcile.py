from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from gds_lfs.dataset import database, reconcile
from gds_lfs.dataset.database import State
from gds_lfs.dataset.declaration import Declaration, Field, Ingest
from gds_lfs.dataset.fieldtype import parse_spelling
from gds_lfs.dataset.tables import Recorded
from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Dataset

IMAGES = """
from PIL import Image
from gds_lfs import File, dataset, ingest, jpg, png

COLOURS = [10, 20, 30]

@dataset(remote="/mnt/nas")
class Segmentation:
    image: File[png | jpg]
    segmentation: File[png]

    @ingest
    def from_web():
        images = [Image.new("RGB", (4, 4), (colour, 0, 0)) for colour in COLOURS]
        return images, [image.convert("L") for image in images]
"""

RESIZED = """
    def segmentation_resized(segmentation: File[png]) -> File[png]:
        return Image.open(segmentation).resize((2, 2))
"""

PLAIN = """
from gds_lfs import dataset, ingest

@dataset(sql_file="dataset.sqlite")
class People:
    name: str
    age: int
"""


# --- the journey of a dataset with files


def test_ingest_places_the_files_of_each_row(dataset: Dataset) -> None:
    result = dataset.reconcile(IMAGES)
    assert (result.added, result.rows, len(result.place)) == (3, 3, 6)
    assert result.summary() == "3 rows (3 added)"
    for row_id, image, segmentation in dataset.sql("SELECT _id, image, segmentation FROM dataset"):
        assert image == f"image/{row_id[:2]}/{row_id}.png"
        assert segmentation == f"segmentation/{row_id[:2]}/{row_id}.png"
    assert all(content is not None and content[:4] == b"\x89PNG" for content in dataset.contents("image"))


def test_nothing_changed_is_an_empty_plan(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES)
    assert dataset.plan(IMAGES).empty
    assert dataset.plan(IMAGES).lines() == []
    assert dataset.plan(IMAGES.replace("@ingest", "# a comment\n    @ingest")).empty


def test_ingesting_again_adds_nothing(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES)
    before = dataset.sql("SELECT * FROM dataset")
    again = dataset.reconcile(IMAGES, ingest_again=True)
    assert (again.added, again.place, again.remove) == (0, [], [])
    more = dataset.reconcile(IMAGES.replace("30]", "30, 40, 40]"))
    assert (more.added, more.rows) == (1, 4)
    assert dataset.sql("SELECT * FROM dataset")[:3] == before


def test_the_same_code_gives_the_same_database_everywhere(dataset: Dataset, tmp_path: Path) -> None:
    from .conftest import Dataset as Folder

    (tmp_path / "elsewhere" / "work").mkdir(parents=True)
    other = Folder(tmp_path / "elsewhere" / "work")
    dataset.reconcile(IMAGES + RESIZED)
    other.reconcile(IMAGES + RESIZED)
    assert dataset.database.read_bytes() == other.database.read_bytes()


def test_a_transform_fills_every_row(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES)
    result = dataset.reconcile(IMAGES + RESIZED)
    assert result.computed == {"segmentation_resized": 3}
    assert result.summary() == "3 rows, segmentation_resized computed for 3"
    assert len(result.place) == 3
    assert len(set(dataset.contents("segmentation_resized"))) == 3


def test_a_changed_transform_is_computed_again_and_only_that(dataset: Dataset) -> None:
    area = "    def area(segmentation_resized) -> int: return len(segmentation_resized.read_bytes())\n"
    width = "    def width(image) -> int: return Image.open(image).width\n"
    dataset.reconcile(IMAGES + RESIZED + area + width)
    assert dataset.plan(IMAGES + RESIZED.replace("(2, 2)", "( 2, 2 )") + area + width).empty
    result = dataset.reconcile(IMAGES + RESIZED.replace("(2, 2)", "(3, 3)") + area + width)
    assert result.computed == {"segmentation_resized": 3, "area": 3}
    same = dataset.reconcile(IMAGES + RESIZED.replace("(2, 2)", "(1 + 2, 3)") + area + width)
    assert (same.computed, same.place, same.remove) == ({"segmentation_resized": 3}, [], [])


def test_new_rows_are_computed_old_ones_are_not(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES + RESIZED)
    result = dataset.reconcile((IMAGES + RESIZED).replace("30]", "30, 40]"))
    assert (result.added, result.computed) == (1, {"segmentation_resized": 1})


@pytest.mark.parametrize("edits_ingest", [False, True])
def test_a_field_is_removed(dataset: Dataset, edits_ingest: bool) -> None:
    dataset.reconcile(IMAGES + RESIZED)
    kept = dataset.sql("SELECT _id, segmentation, segmentation_resized FROM dataset")
    text = (IMAGES + RESIZED).replace("    image: File[png | jpg]\n", "")
    if edits_ingest:
        text = text.replace("return images, [", "return [")
    result = dataset.reconcile(text)
    assert (result.added, result.computed, result.place) == (0, {}, [])
    assert sorted(path.split("/")[0] for path in result.remove) == ["image"] * 3
    assert dataset.sql("SELECT * FROM dataset") == kept
    assert dataset.plan(text).empty


def test_a_derived_file_of_another_kind_replaces_the_old_one(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES + RESIZED)
    result = dataset.reconcile(IMAGES + RESIZED.replace("-> File[png]", "-> File[jpg]"))
    assert len(result.remove) == len(result.place) == 3
    assert [path.rpartition(".")[2] for path in dataset.column("segmentation_resized")] == ["jpg"] * 3


def test_a_failing_transform_changes_nothing(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES)
    before, files = dataset.database.read_bytes(), dataset.files()
    broken = IMAGES.replace("    image: File[png | jpg]\n", "") + RESIZED.replace(".resize", ".size")
    with pytest.raises(DatasetError, match="nothing was changed"):
        dataset.reconcile(broken)
    assert (dataset.database.read_bytes(), dataset.files()) == (before, files)


# --- plain scalars, and rows by hand


def test_fields_come_and_go_under_rows_inserted_by_hand(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN)
    dataset.sql("INSERT INTO dataset(name, age) VALUES ('ann', 3), ('bob', 4), ('bob', 4)")
    result = dataset.reconcile(PLAIN + "    emotion: str\n")
    (notice,) = result.notices
    assert notice.startswith("emotion: 3 rows have no value yet; let an ingest return it, set it with SQL, or declare")
    assert dataset.column("name", "age", "emotion") == [("ann", 3, None), ("bob", 4, None), ("bob", 4, None)]
    ids = dataset.column("_id")
    assert len(set(ids)) == 3
    assert None not in ids
    dataset.reconcile((PLAIN + "    emotion: str\n").replace("    name: str\n", ""))
    assert dataset.sql("SELECT * FROM dataset") == [(ids[0], 3, None), (ids[1], 4, None), (ids[2], 4, None)]


def test_defaults_fill_the_rows_that_are_there(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN)
    dataset.sql("INSERT INTO dataset(name, age) VALUES ('ann', 3)")
    result = dataset.reconcile(PLAIN + '    emotion: str = "calm"\n    note: str | None\n')
    assert result.notices == []
    assert dataset.column("emotion", "note") == [("calm", None)]
    dataset.sql("INSERT INTO dataset(name, age) VALUES ('bob', 4)")
    assert dataset.plan(PLAIN + '    emotion: str = "calm"\n    note: str | None\n').lines() == [
        "give 1 row inserted by hand an id"
    ]
    dataset.reconcile(PLAIN + '    emotion: str = "calm"\n    note: str | None\n')
    assert dataset.column("emotion") == ["calm", "calm"]


GET = "    @ingest\n    def get():\n        return ['ann', 'bob'], [3, 4]\n"


def test_a_new_field_that_the_ingest_brings_completes_the_rows(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + GET)
    ids = dataset.column("_id")
    more = PLAIN + "    emotion: str\n" + GET.replace("[3, 4]", "[3, 4], ['sad', 'glad']")
    result = dataset.reconcile(more)
    assert (result.added, result.completed, result.notices) == (0, 2, [])
    assert result.summary() == "2 rows (2 completed), emotion added"
    assert dataset.column("_id", "emotion") == [(ids[0], "sad"), (ids[1], "glad")]
    again = dataset.reconcile(more, ingest_again=True)
    assert (again.added, again.completed) == (0, 0)


def test_a_default_that_is_declared_later_fills_what_is_empty(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + GET)
    assert dataset.reconcile(PLAIN + "    emotion: str\n" + GET).notices
    result = dataset.reconcile(PLAIN + "    emotion: str = 'calm'\n" + GET)
    assert result.notices == []
    assert set(dataset.column("emotion")) == {"calm"}


def test_the_summary_tells_which_fields_went(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + "    emotion: str = 'calm'\n" + GET)
    assert dataset.reconcile(PLAIN + GET).summary() == "2 rows, emotion removed"


def test_a_field_that_stays_empty_is_completed_by_a_later_ingest(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + GET)
    dataset.reconcile(PLAIN + "    emotion: str\n" + GET)
    result = dataset.reconcile(PLAIN + "    emotion: str\n" + GET.replace("[3, 4]", "[3, 4], ['sad', 'glad']"))
    assert (result.added, result.completed) == (0, 2)


def test_a_row_changed_by_hand_stays_as_it_is(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + GET)
    dataset.sql("UPDATE dataset SET age = 5 WHERE name = 'bob'")
    result = dataset.reconcile(PLAIN + GET, ingest_again=True)
    assert result.added == 0
    assert dataset.column("name", "age") == [("ann", 3), ("bob", 5)]


def test_derived_scalars_follow_rows_changed_inserted_and_deleted_by_hand(dataset: Dataset) -> None:
    text = PLAIN + GET + "    def double(age: int) -> int: return age * 2\n"
    text += "    def text(name, double) -> str: return f'{name}{double}'\n"
    dataset.reconcile(text)
    dataset.sql("UPDATE dataset SET age = 5 WHERE name = 'bob'")
    dataset.sql("DELETE FROM dataset WHERE name = 'ann'")
    dataset.sql("INSERT INTO dataset(name) VALUES ('eve')")
    assert dataset.plan(text).lines() == [
        "give 1 row inserted by hand an id",
        "compute double (1 row whose inputs changed)",
        "compute text (rows whose inputs change)",
    ]
    result = dataset.reconcile(text)
    assert result.computed == {"double": 1, "text": 1}
    assert dataset.column("name", "age", "double", "text") == [("bob", 5, 10, "bob10"), ("eve", None, None, None)]
    assert dataset.plan(text).empty
    dataset.sql("UPDATE dataset SET age = 1 WHERE name = 'eve'")
    dataset.reconcile(text)
    assert dataset.column("text") == ["bob10", "eve2"]


def test_files_of_rows_deleted_by_hand_go(dataset: Dataset) -> None:
    dataset.reconcile(IMAGES + RESIZED)
    row = dataset.column("_id")[1]
    dataset.sql("DELETE FROM dataset WHERE _id = ?", row)
    assert dataset.plan(IMAGES + RESIZED).lines() == ["remove 3 files of deleted rows"]
    assert len(list(database.files(dataset.database))) == 6
    result = dataset.reconcile(IMAGES + RESIZED)
    assert [path.split("/")[2] for path in result.remove] == [f"{row}.png"] * 3
    assert dataset.plan(IMAGES + RESIZED).empty


def test_optional_inputs_may_be_none(dataset: Dataset) -> None:
    text = "from gds_lfs import *\n@dataset\nclass D:\n    x: int\n    f: File[txt] | None\n"
    text += "    @ingest\n    def get(): return [1, 2], [None, b'abc']\n"
    text += "    def size(f) -> int: return 0 if f is None else len(f.read_bytes())\n"
    text += "    def g(f) -> File[txt] | None: return f\n"
    text += "    def flag(x) -> bool: return x > 1\n    def no(flag) -> str: return repr(flag)\n"
    dataset.reconcile(text)
    assert dataset.column("size", "flag", "no") == [(0, 0, "False"), (3, 1, "True")]
    assert dataset.contents("g") == [None, b"abc"]


def test_user_made_objects_survive(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN)
    dataset.sql("INSERT INTO dataset(name, age) VALUES ('ann', 3)")
    dataset.sql("CREATE TABLE notes (x)")
    dataset.sql("CREATE VIEW ages AS SELECT age FROM dataset")
    dataset.sql("CREATE INDEX by_age ON dataset(age)")
    dataset.sql("CREATE TRIGGER log AFTER INSERT ON dataset BEGIN INSERT INTO notes VALUES (new.name); END")
    dataset.reconcile((PLAIN + "    x: int\n").replace("age: int", "age: int | None"))
    names = {name for (name,) in dataset.sql("SELECT name FROM sqlite_master")}
    assert {"notes", "ages", "by_age", "log"} <= names


def test_a_field_in_use_is_not_dropped_and_every_user_is_named(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN)
    dataset.sql("CREATE VIEW ages AS SELECT age FROM dataset")
    dataset.sql('CREATE INDEX "by age" ON dataset(age)')
    dataset.sql("CREATE TABLE other (a REFERENCES dataset(age))")
    dataset.sql("CREATE TRIGGER log AFTER UPDATE OF age ON dataset BEGIN SELECT new.age; END")
    before = dataset.database.read_bytes()
    with pytest.raises(DatasetError) as caught:
        dataset.reconcile(PLAIN.replace("    age: int\n", ""))
    for user in ("view ages", "index by age", "table other", "trigger log"):
        assert user in str(caught.value)
    assert str(caught.value).startswith("age cannot be dropped, it is used by ")
    assert dataset.database.read_bytes() == before


def test_types_that_widen_keep_their_values(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN + GET)
    result = dataset.reconcile((PLAIN + GET).replace("age: int", "age: float"))
    assert result.added == 0
    assert [repr(age) for age in dataset.column("age")] == ["3.0", "4.0"]
    again = dataset.reconcile((PLAIN + GET).replace("age: int", "age: float"), ingest_again=True)
    assert again.added == 0
    with pytest.raises(DatasetError, match="age: float cannot become str, its values may not fit"):
        dataset.plan((PLAIN + GET).replace("age: int", "age: str"))


def test_a_database_in_wal_mode_comes_out_with_a_plain_journal(dataset: Dataset) -> None:
    dataset.reconcile(PLAIN)
    connection = sqlite3.connect(dataset.database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("INSERT INTO dataset(name, age) VALUES ('ann', 3)")
    connection.commit()
    database.checkpoint(dataset.database)
    connection.close()
    dataset.reconcile(PLAIN + "    x: int | None\n")
    assert dataset.database.read_bytes()[18:20] == b"\1\1"
    assert dataset.column("name") == ["ann"]


def test_tables_that_a_user_had_before_survive(dataset: Dataset) -> None:
    dataset.sql("CREATE TABLE mine (x)")
    dataset.sql("INSERT INTO mine VALUES (7)")
    dataset.reconcile(PLAIN)
    assert dataset.sql("SELECT x FROM mine") == [(7,)]


def test_adding_a_field_leaves_most_pages_alone(dataset: Dataset) -> None:
    text = PLAIN + "    @ingest\n    def get(): return ['n' * 80 + str(n) for n in range(3000)], range(3000)\n"
    dataset.reconcile(text)
    before = dataset.database.read_bytes()
    dataset.reconcile(text.replace("    age: int\n", "    age: int\n    note: str | None = None\n"))
    after = dataset.database.read_bytes()
    changed = sum(before[at : at + 4096] != after[at : at + 4096] for at in range(0, len(after), 4096))
    assert changed <= 8 < len(after) // 4096


# --- the plan by itself


def declared(*fields: Field, ingests: tuple[Ingest, ...] = ()) -> Declaration:
    return Declaration("D", "dataset.sqlite", None, fields, ingests)


def stored(name: str, spelling: str = "int") -> Field:
    return Field(name, parse_spelling(spelling))


def derived(name: str, *inputs: str, code: str = "c", spelling: str = "int") -> Field:
    return Field(name, parse_spelling(spelling), required=False, derived=True, inputs=inputs, code=code)


def state(declaration: Declaration, **more: object) -> State:
    fields = tuple(
        Recorded(field.name, field.type, field.code if field.derived else None, field.inputs)
        for field in declaration.fields
    )
    ingests = {ingest.name: ingest.code for ingest in declaration.ingests}
    return State("agreed", fields, ingests, rows=3, **more)  # type: ignore[arg-type]


def lines(declaration: Declaration, state: State, **more: bool) -> list[str]:
    return reconcile.plan(declaration, state, "agreed", **more).lines()


BASE = declared(stored("x"), derived("y", "x"), derived("z", "y"), ingests=(Ingest("get", "g"),))


def test_plan_of_a_new_dataset() -> None:
    assert lines(BASE, State()) == [
        "make dataset.sqlite",
        "add field x: int",
        "add field y: int",
        "add field z: int",
        "run ingest get (new)",
        "compute y (new, every row)",
        "compute z (new, every row)",
    ]


def test_plan_of_an_agreeing_dataset_is_empty() -> None:
    assert reconcile.plan(BASE, state(BASE), "agreed").empty


def test_plan_of_code_that_changes_no_data_only_records_it() -> None:
    plan = reconcile.plan(BASE, state(BASE), "other")
    assert not plan.empty
    assert plan.lines() == ["record in dataset.sqlite that it agrees with the code"]


def test_plan_of_changed_code() -> None:
    changed = declared(stored("x"), derived("y", "x", code="d"), derived("z", "y"), ingests=(Ingest("get", "h"),))
    assert lines(changed, state(BASE)) == [
        "run ingest get (its code changed)",
        "compute y (its code changed, every row)",
        "compute z (rows whose inputs change)",
    ]


def test_plan_of_a_renamed_ingest_and_of_a_removed_one_runs_nothing() -> None:
    renamed = declared(*BASE.fields, ingests=(Ingest("fetch", "g"),))
    assert lines(renamed, state(BASE)) == []
    assert lines(declared(*BASE.fields), state(BASE)) == []
    assert lines(renamed, state(BASE), ingest_again=True)[0] == "run ingest fetch (again)"


def test_plan_of_a_rename_says_what_it_is() -> None:
    renamed = declared(stored("w"), ingests=BASE.ingests)
    assert lines(renamed, state(declared(stored("x"), ingests=BASE.ingests))) == [
        "drop field x",
        "add field w: int",
        "x goes and w comes: a renamed field is dropped and added; the values that go stay in the last commit",
    ]


def test_plan_of_stored_and_derived_changing_places() -> None:
    computed = declared(stored("x"), derived("y", "x"))
    given = declared(stored("x"), stored("y"))
    assert lines(given, state(computed)) == []
    assert lines(computed, state(given))[:2] == ["drop field y", "add field y: int"]


@pytest.mark.parametrize(
    ("old", "new"), [("int", "str"), ("float", "int"), ("File[png | jpg]", "File[png]"), ("str", "File[png]")]
)
def test_plan_refuses_types_that_do_not_fit(old: str, new: str) -> None:
    with pytest.raises(DatasetError, match=r"x: .* cannot become"):
        reconcile.plan(declared(stored("x", new)), state(declared(stored("x", old))), "agreed")


def test_plan_of_a_widened_type() -> None:
    assert lines(declared(stored("x", "float | None")), state(declared(stored("x")))) == [
        "change field x from int to float | None"
    ]

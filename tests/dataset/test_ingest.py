from __future__ import annotations

from gds_lfs.dataset.declaration import Field
from gds_lfs.dataset.fieldtype import parse_spelling
from gds_lfs.dataset.ingest import KnownRows, Match

NAME = Field("name", parse_spelling("str"))
MOOD = Field("mood", parse_spelling("str"), required=False, default="calm")
AGE = Field("age", parse_spelling("int | None"))


def test_content_is_known_once_added() -> None:
    known = KnownRows([NAME, AGE], [])
    known.add("id1", ["ann", 3])
    assert known.match(["ann", 3]) is None
    added = known.match(["bob", None])
    assert added is not None
    assert added.is_new
    assert added.fields == {"name", "age"}
    assert known.match(["bob", None]) is None


def test_none_in_an_optional_field_is_a_value() -> None:
    known = KnownRows([NAME, AGE], [])
    known.add("id1", ["ann", None])
    match = known.match(["ann", 3])
    assert match is not None
    assert match.is_new


def test_a_row_that_lacks_a_required_value_is_completed_once() -> None:
    known = KnownRows([NAME, Field("mood", parse_spelling("str"))], [])
    known.add("id1", ["ann", None])
    assert known.match(["ann", "sad"]) == Match("id1", False, frozenset({"mood"}))
    assert known.match(["ann", "sad"]) is None
    second = known.match(["ann", "glad"])
    assert second is not None
    assert second.is_new


def test_equal_rows_that_lack_a_value_are_completed_in_turn() -> None:
    known = KnownRows([NAME, AGE], ["age"])
    known.add("id1", ["ann", None])
    known.add("id2", ["ann", None])
    matches = [known.match(["ann", 1]), known.match(["ann", 2]), known.match(["ann", 3])]
    assert [match and (match.identity if not match.is_new else "new") for match in matches] == ["id1", "id2", "new"]


def test_a_row_that_the_default_fits_is_not_completed_with_something_else() -> None:
    known = KnownRows([NAME, MOOD], ["mood"])
    known.add("id1", ["ann", "calm"])
    assert known.match(["ann", "calm"]) is None
    second = known.match(["ann", "sad"])
    assert second is not None
    assert second.is_new


def test_a_completed_row_is_no_longer_what_it_was() -> None:
    known = KnownRows([NAME, MOOD], ["mood"])
    known.add("id1", ["ann", "calm"])
    assert known.match(["ann", "sad"]) == Match("id1", False, frozenset({"mood"}))
    second = known.match(["ann", "calm"])
    assert second is not None
    assert second.is_new


def test_rows_that_lack_everything_match_nothing() -> None:
    known = KnownRows([NAME], ["name"])
    known.add("id1", [None])
    match = known.match(["ann"])
    assert match is not None
    assert match.is_new

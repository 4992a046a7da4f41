from __future__ import annotations

from typing import Any

from gds_lfs.dataset.parse.program import Function, Split
from gds_lfs.dataset.parse.serving import Serving


class Listed:
    """A program with the ids that it is given."""

    def __init__(self, **ids: list[Any]) -> None:
        self.ids = ids

    def load(self) -> list[Function]:
        return [Function("input", "a", "a.py:1"), Function("loss", "l", "a.py:2")]

    def splits(self) -> list[Split]:
        return [Split(name, ids) for name, ids in self.ids.items()]

    def value(self, function: Function, split: Split, position: int) -> object:
        return split.ids[position]

    def verify(self) -> None:
        raise ValueError("no")

    def notes(self) -> list[str]:
        return ["a note"]


def splits(**ids: list[Any]) -> dict[str, Any]:
    serving = Serving(Listed(**ids), "/", None)
    serving.answer({"do": "functions"})
    return serving.answer({"do": "splits"})


def test_ids_are_compared() -> None:
    found = splits(one=["a", "b"], two=["c"])
    assert [(each["name"], each["length"], each["repeated"], each["unhashable"]) for each in found["splits"]] == [
        ("one", 2, "", ""),
        ("two", 1, "", ""),
    ]
    assert found["shared"] == []
    assert splits(one=["a", "b", "a"])["splits"][0]["repeated"] == "a"
    assert splits(one=[["a"]])["splits"][0]["unhashable"] == "['a'] (list)"
    assert splits(one=[1, 2], two=[2])["shared"] == ["one", "two", "2"]


def test_values_and_notes() -> None:
    serving = Serving(Listed(one=[1.5, None]), "/", None)
    assert serving.answer({"do": "functions"})["functions"][1] == ["loss", "l", "a.py:2", ""]
    serving.answer({"do": "splits"})
    asked = {"do": "value", "kind": "input", "name": "a", "split": "one", "position": 0}
    answer = serving.answer(asked)
    assert (answer["id"], answer["value"]["dtype"]) == ("1.5", "float")
    assert serving.answer({**asked, "position": 7})["error"]["error"] == "IndexError"
    assert serving.answer({"do": "verify"})["error"]["text"] == "ValueError: no"
    assert serving.answer({"do": "notes"}) == {"notes": ["a note"], "outside": {}}
    assert serving.answer({"do": "memory"})["memory"] > 1 << 20

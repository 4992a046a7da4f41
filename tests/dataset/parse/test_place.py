from __future__ import annotations

import os
from pathlib import Path

import pytest

from gds_lfs.dataset.parse.place import facts, own_path, stack_place
from gds_lfs.dataset.parse.program import ProgramError


def test_own_files() -> None:
    assert own_path("/repo/a/b.py", "/repo") == "a/b.py"
    assert own_path("/repo/venv/lib/site-packages/b.py", "/repo") is None
    assert own_path("/other/b.py", "/repo") is None
    assert own_path("<frozen importlib>", "/repo") is None


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


HERE = str(Path(__file__).parent)


def test_facts_of_an_exception() -> None:
    found = facts(raised(ValueError("two\nlines")), HERE)
    assert found["text"] == "ValueError: two\nlines"
    assert found["where"].startswith("test_place.py:")
    assert found["where"].endswith(", in raised")
    assert (found["path"], found["module"], found["exit"], found["memory"], found["kind"]) == (None,) * 3 + (False, "")
    assert len(facts(raised(ValueError("x" * 5000)), HERE)["text"]) == 600


@pytest.mark.parametrize(
    ("error", "path"),
    [
        (FileNotFoundError(2, "no", "x/y.csv"), os.path.abspath("x/y.csv")),
        (FileNotFoundError(2, "no", b"/x"), "/x"),
        (FileNotFoundError("unable to open file (name = '/data/x.h5', errno = 2)"), "/data/x.h5"),
        (PermissionError(13, "no", Path("/x")), "/x"),
        (FileNotFoundError("nothing to be seen"), None),
        (KeyError("/x"), None),
    ],
)
def test_the_file_that_an_error_is_about(error: Exception, path: str | None) -> None:
    assert facts(error, HERE)["path"] == path


def test_other_facts() -> None:
    assert facts(SystemExit(3), HERE)["exit"] == "3"
    assert facts(MemoryError(), HERE)["memory"]
    assert facts(RuntimeError("CUDA out of memory. Tried to allocate"), HERE)["memory"]
    assert facts(ModuleNotFoundError("no", name="json_"), HERE)["similar"][0] == "json"
    found = facts(ProgramError("text", "preprocess_result", "a.py:3", "do"), HERE)
    assert [found[name] for name in ("text", "kind", "where", "advice")] == [
        "text",
        "preprocess_result",
        "a.py:3",
        "do",
    ]
    error = SyntaxError("bad", (f"{HERE}/a/b.py", 7, 1, "x"))
    assert facts(error, HERE)["where"] == "a/b.py:7"


def test_the_place_in_what_faulthandler_writes() -> None:
    dump = """Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/repo/a/helper.py", line 4 in read
  File "/repo/index.py", line 9 in <module>
"""
    assert stack_place(dump, "/repo") == "a/helper.py:4, in read"
    assert stack_place(dump.replace("/repo/a/helper.py", "/x.py"), "/repo") == "index.py:9"
    assert stack_place("", "/repo") == ""

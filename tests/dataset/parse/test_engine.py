"""Datasets that load, and one small broken one for each way in which one does not."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from gds_lfs.dataset.parse.engine import spread

from .conftest import HEAD

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Parsing

INPUT = "    @input('a')\n    def a(row):\n"
LAST = "    @metadata('m')\n    def m(row): return row.x\n"


def status(result: object) -> dict[str, str]:
    return {stage.name: stage.because or stage.status for stage in result.stages}  # type: ignore[attr-defined]


def test_a_dataset_that_loads(parsing: Parsing) -> None:
    text = (
        "    def half(x) -> float: return x / 2\n"
        "    @preprocess\n    def split(rows):\n        open(COUNT, 'a').write('x')\n"
        "        return {'training': rows[:8], 'validation': rows[8:]}\n"
        + INPUT
        + "        return [[row.half, 1], [2, row['x']]]\n"
        "    @ground_truth('g')\n    def g(row) -> int: return row.x\n"
        "    @metadata('m')\n    def m(row): return {'id': row.id, 'ten': 10}\n"
    )
    result = parsing.run(text, samples=3)
    assert result.valid
    assert result.failures == result.warnings == []
    assert parsing.counted() == 1
    assert [(each.kind, each.name, each.where) for each in result.functions] == [
        ("field", "x", "index.py:9"),
        ("transform", "half", "index.py:13"),
        ("ingest", "load", "index.py:11"),
        ("preprocess", "split", "index.py:15"),
        ("input", "a", "index.py:19"),
        ("ground_truth", "g", "index.py:22"),
        ("metadata", "m", "index.py:24"),
    ]
    assert [(split.name, split.length) for split in result.splits] == [("training", 8), ("validation", 2)]
    first = result.samples[0]
    assert (first.kind, first.split, first.position) == ("input", "training", 0)
    assert first.value is not None
    assert (first.value.dtype, first.value.shape, first.value.min, first.value.max) == ("float", [2, 2], 0, 2)
    assert len(first.id) == 32
    assert [each.position for each in result.samples if each.name == "g"] == [0, 4, 7, 0, 1]
    assert all(stage.status == "ok" and stage.seconds and stage.peak_memory for stage in result.stages)


def test_without_preprocess_there_is_one_split_and_without_handlers_fields_are_read(parsing: Parsing) -> None:
    result = parsing.run("    def y(x) -> str: return str(x)\n")
    assert [(split.name, split.length) for split in result.splits] == [("all", 10)]
    assert [(each.kind, each.name) for each in result.samples] == [("field", "x"), ("transform", "y")]
    assert result.valid


def test_rows_are_a_sequence(parsing: Parsing) -> None:
    text = (
        "    @preprocess\n    def split(rows):\n"
        "        assert len(rows) == 10 and rows[-1].x == 9 and len(rows[2:4] + rows[:1]) == 3\n"
        "        assert [row.x for row in rows[::3]] == [0, 3, 6, 9] and dict(rows[1])['x'] == 1\n"
        "        assert rows[3] in rows and rows[3] == rows[3] and rows[3] != rows[4]\n"
        "        try: rows[10]\n        except IndexError: pass\n"
        "        try: rows[0].nonsense\n        except AttributeError as error: assert 'those are x' in str(error)\n"
        "        return {'even': [row for row in rows if row.x % 2 == 0], 'odd': (r for r in rows if r.x % 2)}\n"
    )
    result = parsing.run(text + LAST)
    assert result.failures == []
    assert [(split.name, split.length) for split in result.splits] == [("even", 5), ("odd", 5)]


def test_a_field_may_have_any_name(parsing: Parsing) -> None:
    head = HEAD.replace("x: int", "id: int\n    keys: int = 3")
    result = parsing.run(INPUT + "        assert row.keys == 3\n        return row.id\n", head=head)
    assert result.valid
    assert len(result.samples[0].id) == 32


def test_a_look_takes_the_first_rows_of_an_ingest(parsing: Parsing) -> None:
    head = HEAD.replace("range(10)", "range(1000)")
    text = "    def y(x) -> int:\n        open(COUNT, 'a').write('x')\n        return x\n"
    assert [split.length for split in parsing.run(text, head=head).splits] == [100]
    assert parsing.counted() == 100


@pytest.mark.parametrize(
    ("text", "kind", "where", "says"),
    [
        ("    def y(x) -> int: return 1 // x\n", "exception_in_transform", "index.py:13, in y", "ZeroDivision"),
        ("    @preprocess\n    def p(rows): return rows.a\n", "exception_in_preprocess", "index.py:14, in p", "'a'"),
        ("    @preprocess\n    def p(rows): return None\n", "preprocess_result", "index.py:14", "returned None"),
        ("    @preprocess\n    def p(rows): return {'t': 3}\n", "preprocess_result", "index.py:14", "'t' is int"),
        ("    @preprocess\n    def p(rows): return {'t': [3]}\n", "preprocess_result", "index.py:14", "int at 0"),
        (INPUT + "        return [][row.x]\n", "exception_in_input", "index.py:15, in a", "IndexError"),
        (INPUT + "        pass\n", "none_value", "index.py:14", "returned None"),
        (INPUT + "        return [1, float('nan')]\n", "nan_value", "index.py:14", "1 of 2 values"),
        (INPUT + "        return {'a': 1}\n", "wrong_type", "index.py:14", "a dict"),
        (INPUT + "        return object()\n", "wrong_type", "index.py:14", "object is no array"),
        (INPUT + "        return [[1], [1, 2]]\n", "wrong_type", "index.py:14", "different lengths"),
        ("    @input('a')\n    def a(row) -> str: return 1\n", "wrong_type", "index.py:14", "int, declared as str"),
        ("    @ground_truth('a')\n    def a(row): 1 / 0\n", "exception_in_ground_truth", "index.py:14, in a", "Zero"),
        ("    @metadata('a')\n    def a(row): 1 / 0\n", "exception_in_metadata", "index.py:14, in a", "ZeroDiv"),
        ("    @metadata('a')\n    def a(row): return [1, 2]\n", "wrong_type", "index.py:14", "not a scalar"),
        ("    @metadata('a')\n    def a(row): return {'b': {}}\n", "wrong_type", "index.py:14", "b is a dict"),
        (INPUT + "        sys.exit(3)\n", "exit_called", "index.py:15, in a", "sys.exit(3)"),
        (INPUT + "        os._exit(4)\n", "exit_called", "index.py:14", "exit code 4"),
        (INPUT + "        os.kill(os.getpid(), 9)\n", "killed", "index.py:14", "SIGKILL"),
        (INPUT + "        __import__('ctypes').string_at(0)\n", "crashed", "index.py:15, in a", "SIGSEGV"),
        (INPUT + "        raise MemoryError\n", "out_of_memory", "index.py:15, in a", "MemoryError"),
        (INPUT + "        open(HERE / 'no.csv')\n", "file_not_found", "index.py:15, in a", "no.csv"),
        (INPUT + "        os.listdir('nowhere')\n", "file_not_found", "index.py:15, in a", "nowhere"),
        (INPUT + "        raise PermissionError(13, 'no', '/x/y')\n", "permission", "index.py:15, in a", "/x/y"),
        ("    y: int\n", "ingest_result", "index.py:11", "a tuple of x, y"),
        ("    def y(x): return 1\n", "declaration", "index.py:13", "says its type"),
        ("    @input('a')\n    def a(): return 1\n", "declaration", "index.py:14", "takes one thing"),
        ("    @input\n    def a(row): return 1\n", "exception_in_import", "index.py:13, in D", '@input("name")'),
        ("import nowhere_at_all\n", "module_not_found", "index.py:13", "nowhere_at_all, []"),
        ("import jsn\n", "module_not_found", "index.py:13", "jsn, ['json"),
        ("1 / 0\n", "exception_in_import", "index.py:13", "ZeroDivisionError"),
        ("def f(:\n", "syntax_error", "index.py:13", "SyntaxError: invalid syntax"),
        ("sys.exit()\n", "exit_called", "index.py:13", "sys.exit(None)"),
    ],
)
def test_what_is_wrong_is_classified_and_placed(parsing: Parsing, text: str, kind: str, where: str, says: str) -> None:
    found = parsing.failure(text)
    assert (found.kind, found.where) == (kind, where)
    assert says in found.text


def test_the_place_is_the_innermost_own_line(parsing: Parsing) -> None:
    files = {"helper.py": "import json\n\ndef read(text):\n    return json.loads(text)\n"}
    found = parsing.failure(INPUT + "        import helper\n        return helper.read('{')\n", files=files)
    assert found.where == "helper.py:4, in read"
    assert found.trace == ["index.py:16, in a", "helper.py:4, in read"]
    assert (found.function, found.split, len(found.sample or "")) == ("input a", "all", 32)


def test_one_that_ends_python_does_not_hide_the_others_either(parsing: Parsing) -> None:
    text = (
        "    @preprocess\n    def p(rows):\n        open(COUNT, 'a').write('x')\n"
        "        return {'t': rows, 'v': rows[:1]}\n" + INPUT + "        os._exit(4)\n"
        "    @ground_truth('b')\n    def b(row): return row.x\n"
        "    @metadata('c')\n    def c(row): return 1 / 0\n"
    )
    result = parsing.run(text)
    found = [(each.kind, each.split, (each.function or "")[-1:]) for each in result.failures]
    assert found == [
        ("exit_called", "t", "a"),
        ("exception_in_metadata", "t", "c"),
        ("exit_called", "v", "a"),
        ("exception_in_metadata", "v", "c"),
    ]
    assert [sample.name for sample in result.samples if sample.value is not None] == ["b", "b"]
    assert parsing.counted() == 3, "once, and again for each that ended Python"


def test_after_so_many_the_rest_is_left_out(parsing: Parsing) -> None:
    text = "".join(f"    @input('{n}')\n    def i{n}(row): os._exit(4)\n" for n in range(6))
    result = parsing.run(text)
    assert [each.kind for each in result.failures] == ["exit_called"] * 4
    assert result.notes == ["Python ended too often: what was not called yet is left out"]


def test_one_failing_handler_does_not_hide_the_others(parsing: Parsing) -> None:
    text = (
        "    @preprocess\n    def p(rows): return {'one': rows[:5], 'two': rows[5:]}\n"
        + INPUT
        + "        raise ValueError(row.x)\n    @ground_truth('g')\n    def g(row): return 1 / (row.x - 5)\n"
        + LAST
    )
    result = parsing.run(text, samples=2)
    assert [(each.kind, each.split) for each in result.failures] == [
        ("exception_in_input", "one"),
        ("exception_in_input", "two"),
        ("exception_in_ground_truth", "two"),
    ]
    assert [each.value is not None for each in result.samples if each.name == "m"] == [True] * 4


def test_stages_that_depend_on_a_failed_one_are_skipped_by_name(parsing: Parsing) -> None:
    result = parsing.run("    def y(x) -> int: return 1 // x\n")
    assert status(result) == {"functions": "ok", "rows": "failed", "preprocess": "rows", "samples": "rows"}
    found = result.failures[0]
    assert (found.stage, found.function, (found.sample or "")[:4]) == ("rows", "transform y", "row ")


def test_shapes_and_dtypes_are_compared_between_samples_and_splits(parsing: Parsing) -> None:
    text = "    @preprocess\n    def p(rows): return {'one': rows[:5], 'two': rows[5:]}\n" + INPUT
    result = parsing.run(text + "        return [row.x * 0.5 if row.x > 4 else 1] * (1 + row.x // 4)\n", samples=2)
    assert [(each.kind, each.split) for each in result.failures] == [
        ("shape_changes", "one"),
        ("dtype_changes", "two"),
        ("shape_changes", "two"),
    ]
    assert "shape 2, but 1 for sample" in result.failures[0].text


def test_a_sample_twice_is_a_fault_and_one_in_two_splits_a_warning(parsing: Parsing) -> None:
    text = "    @preprocess\n    def p(rows): return {'one': rows[:5], 'two': [*rows[4:], rows[9]], 'no': []}\n"
    result = parsing.run(text)
    assert [(each.kind, each.split) for each in result.failures] == [("repeated_id", "two")]
    assert [(each.kind, each.split) for each in result.warnings] == [("empty_split", "no"), ("shared_id", None)]


def test_what_is_printed_is_captured_by_stage(parsing: Parsing) -> None:
    text = (
        "    @preprocess\n    def p(rows):\n        import logging\n        logging.warning('logged')\n"
        "        os.write(1, b'one\\n'); os.write(2, b'two\\n'); os.system('echo three')\n"
        "        __import__('ctypes').CDLL(None).puts(b'four')\n"
        "        return {'all': rows}\n" + INPUT + "        print('five')\n        return 1\n"
    )
    result = parsing.run(text)
    output = {stage.name: stage.output for stage in result.stages}
    assert output["preprocess"].split() == ["WARNING:root:logged", "one", "two", "three", "four"]
    assert (output["functions"], output["samples"]) == ("", "five\n")


def test_a_flood_of_output_is_cut(parsing: Parsing) -> None:
    stage = parsing.run(INPUT + "        print('x' * 1_000_000)\n        return 1\n").stages[-1]
    assert (stage.output_size, len(stage.output)) == (1_000_001, 16_384)


def test_a_hang_is_ended_where_it_hangs(parsing: Parsing) -> None:
    began = time.monotonic()
    found = parsing.failure(INPUT + "        while True:\n            pass\n", seconds=1.5)
    assert (found.kind, found.function, found.split) == ("hang", "input a", "all")
    assert found.where in ("index.py:15, in a", "index.py:16, in a")
    assert "datasets.parseTimeout" in found.advice
    assert time.monotonic() - began < 20


MIB = 1 << 20


@pytest.mark.parametrize("how", ["bytearray(b'x') * (400 << 20)", "__import__('os').system(EATER)", "grow()"])
def test_memory_is_limited_by_what_is_resident(parsing: Parsing, how: str) -> None:
    eater = f"{os.sys.executable} -c \"x = bytearray(b'x') * (400 << 20); import time; time.sleep(9)\""
    helper = (
        f"EATER = {eater!r}\ndef grow():\n    import mmap\n    held = []\n    while True:\n"
        "        held.append(mmap.mmap(-1, 1 << 20)); held[-1].write(b'x' * (1 << 20))\n"
    )
    text = INPUT + f"        from helper import EATER, grow\n        x = {how}\n        __import__('time').sleep(9)\n"
    found = parsing.failure(text, files={"helper.py": helper}, memory=200 * MIB)
    assert (found.kind, found.function) == ("out_of_memory", "input a")
    assert found.where in ("index.py:16, in a", "index.py:17, in a", "helper.py:6, in grow")
    assert "the limit is 200 MiB (datasets.memoryLimit)" in found.text
    assert "git config datasets.memoryLimit 400m" in found.advice


def test_address_space_that_is_not_used_is_not_counted(parsing: Parsing) -> None:
    text = INPUT + "        import mmap\n        space = mmap.mmap(-1, 4 << 30)\n        return 1\n"
    assert parsing.run(text, memory=200 * MIB).valid


def test_nothing_is_left_behind(parsing: Parsing, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = INPUT + (
        "        if not os.fork():\n            os.setsid()\n            if os.fork(): os._exit(0)\n"
        f"            open({str(pids)!r}, 'w').write(str(os.getpid()))\n"
        "            __import__('time').sleep(100)\n            os._exit(0)\n"
        f"        while not os.path.exists({str(pids)!r}): pass\n        return 1\n"
    )
    assert parsing.run(text).valid
    pid = int(pids.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_ingest_that_crashes_is_placed_in_the_work_tree(parsing: Parsing) -> None:
    head = HEAD.replace("list(range(10))", "__import__('ctypes').string_at(0)")
    found = parsing.failure("", head=head)
    assert (found.kind, found.where, found.function) == ("crashed", "index.py:12, in load", "ingest load")


def test_a_python_that_is_too_old_or_none(parsing: Parsing, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\ncase $1 in -c) printf 3.8;; *) exit 1;; esac\n")
    old.chmod(0o755)
    found = parsing.failure("", python=str(old))
    assert (found.kind, found.text) == ("wrong_python", f"{old} is Python 3.8; index.py needs 3.10 or newer")
    assert found.advice == "git config datasets.python <path>"


def test_a_handler_may_fork(parsing: Parsing) -> None:
    result = parsing.run(INPUT + "        return os.fork() and 1\n" + LAST)
    assert [each.value.max for each in result.samples if each.value] == [1, 0]


def test_a_handler_that_closes_our_files(parsing: Parsing) -> None:
    found = parsing.failure(INPUT + "        os.closerange(3, 100)\n        return 1\n")
    assert (found.kind, found.function) in (("crashed", "input a"), ("exit_called", "input a"))


def test_a_path_outside_the_volumes_is_refused(parsing: Parsing, tmp_path: Path) -> None:
    for name in ("allowed", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text("1")
    text = INPUT + "        return int(open(PATH).read())\n"
    allowed = text.replace("PATH", repr(str(tmp_path / "allowed/x.csv")))
    assert parsing.run(allowed, volumes=(str(tmp_path / "allowed"),)).valid
    (parsing.clean / "index.py").unlink()
    for file in (tmp_path / "spool").iterdir():
        file.unlink()
    found = parsing.failure(
        text.replace("PATH", repr(str(tmp_path / "other/x.csv"))), volumes=(str(tmp_path / "allowed"),)
    )
    assert (found.kind, found.where) == ("outside_volumes", "index.py:15, in a")
    assert "git config --add datasets.volumes" in found.advice


def test_a_database_is_read_wherever_the_code_went(parsing: Parsing, tmp_path: Path) -> None:
    text = "    @preprocess\n    def p(rows):\n        os.chdir('/')\n        return {'all': [*rows]}\n" + LAST
    assert parsing.run(text, volumes=(str(tmp_path / "none"),)).valid


def test_what_only_this_machine_has_is_told(parsing: Parsing, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1")
    (parsing.work / "y.csv").write_text("1")
    (parsing.clean / "z.csv").write_text("1")
    text = INPUT + "        [open(p).read() for p in PATHS]\n        __import__('tempfile').TemporaryFile().close()\n"
    paths = [str(tmp_path / "x.csv"), str(parsing.work / "y.csv"), str(parsing.clean / "z.csv")]
    result = parsing.run(text.replace("PATHS", repr(paths)) + "        return 1\n")
    assert result.valid
    assert [each.kind for each in result.warnings] == ["file_outside"] * 2
    assert "x.csv, which is outside the repository" in result.warnings[0].text
    assert "Path(__file__).parent / 'y.csv'" in result.warnings[1].advice


def test_ingests_see_the_work_tree_and_handlers_what_others_have(parsing: Parsing) -> None:
    (parsing.work / "raw.txt").write_text("7")
    head = HEAD.replace("list(range(10))", "[int((HERE / 'raw.txt').read_text()), int(open('raw.txt').read())]")
    found = parsing.failure(INPUT + "        return int((HERE / 'raw.txt').read_text())\n", head=head)
    assert (found.kind, found.where) == ("file_not_found", "index.py:15, in a")
    assert f"asked for {parsing.clean / 'raw.txt'}" in found.text


def test_samples_are_spread_over_a_split() -> None:
    assert spread(0, 3) == []
    assert spread(10, 1) == [0]
    assert spread(10, 3) == [0, 4, 9]
    assert spread(3, 10) == [0, 1, 2]
    assert spread(1, 2) == [0]


def test_numpy_is_known_and_its_memory_counts(parsing: Parsing) -> None:
    text = "    @input('a')\n    def a(row):\n        import numpy\n        return numpy.zeros((2, 3), 'float32')\n"
    value = parsing.run(text).samples[0].value
    assert value is not None
    assert (value.type, value.dtype, value.shape, value.min) == ("ndarray", "float32", [2, 3], 0)


def test_numpy_over_the_limit(parsing: Parsing) -> None:
    text = "    @input('a')\n    def a(row):\n        import numpy\n        reserved = numpy.zeros(1 << 30)\n"
    text += "        numpy.ones(1 << 26)\n        __import__('time').sleep(9)\n"
    found = parsing.failure(text, memory=300 * MIB)
    assert (found.kind, found.function, found.split) == ("out_of_memory", "input a", "all")
    assert found.where in ("index.py:17, in a", "index.py:18, in a")

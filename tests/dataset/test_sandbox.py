from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gds_lfs.errors import DatasetError

if TYPE_CHECKING:
    from gds_lfs.dataset.sandbox import Sandbox

    from .conftest import Dataset

HEAD = "from gds_lfs import *\nimport os, sys\n"
ONE = HEAD + "@dataset\nclass D:\n    x: int\n"


def _run_all(sandbox: Sandbox) -> None:
    declared = sandbox.declare()
    for ingest in declared.ingests:
        list(sandbox.ingest(ingest.name))
    for field in declared.derived:
        list(sandbox.derive(field.name, [("r1", [1]), ("r2", [2])]))


def failure(dataset: Dataset, text: str, neighbours: dict[str, str] | None = None, **more: object) -> str:
    with dataset.sandbox(text, neighbours, **more) as sandbox, pytest.raises(DatasetError) as caught:
        _run_all(sandbox)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def test_ingest_and_derive(dataset: Dataset) -> None:
    text = ONE + "    f: File[txt]\n    @ingest\n    def get(): return [1, 2], [b'a', b'b']\n"
    text += "    def y(x) -> float: return x * 2\n    def g(f) -> str: return f.kind + f.read_bytes().decode()\n"
    with dataset.sandbox(text) as sandbox:
        assert [field.name for field in sandbox.declare().fields] == ["x", "f", "y", "g"]
        rows = list(sandbox.ingest("get"))
        assert [row[0] for row in rows] == [1, 2]
        files = [row[1] for row in rows]
        assert [path.read_bytes() for path in files if isinstance(path, Path)] == [b"a", b"b"]
        many = [(str(number), [number]) for number in range(200)]
        assert list(sandbox.derive("y", many)) == [2.0 * number for number in range(200)]
        assert list(sandbox.derive("g", [("r", [files[1]])])) == ["txtb"]
        assert list(sandbox.derive("y", [])) == []


def test_what_user_code_prints_stays_out_of_the_protocol(dataset: Dataset) -> None:
    text = ONE + "    @ingest\n    def get():\n        print('[1]')\n        os.write(1, b'[2]\\n')\n"
    text += "        os.system('echo [3]')\n        sys.__stdout__.write('é\\ud800\\n')\n        return [4]\n"
    heard = []
    with dataset.sandbox("print('[0]')\n" + text, output=heard.append) as sandbox:
        assert list(sandbox.ingest("get")) == [[4]]
    assert sorted(b"".join(heard).decode("utf-8", "replace").split()[:4]) == ["[0]", "[1]", "[2]", "[3]"]


def test_a_flood_of_output_blocks_nobody(dataset: Dataset) -> None:
    text = ONE + "    @ingest\n    def get():\n        print('x' * 5_000_000)\n        return [1]\n"
    with dataset.sandbox(text) as sandbox:
        assert list(sandbox.ingest("get")) == [[1]]


def test_standard_input_is_empty(dataset: Dataset) -> None:
    assert "EOFError" in failure(
        dataset, ONE + "    @ingest\n    def get(): return [int(__import__('builtins').input())]\n"
    )


def test_the_process_as_user_code_sees_it(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    text = (
        HEAD + "HERE = __file__\n@dataset\nclass D:\n    x: str\n    @ingest\n    def get():\n        os.chdir('/')\n"
    )
    text += "        return [HERE, __name__, sys.argv[0], os.environ.get('GIT_INDEX_FILE', 'none')]\n"
    text += "    def y(x) -> str: return os.getcwd()\n"
    with dataset.sandbox(text) as sandbox:
        entry = str(dataset.root / "index.py")
        assert [row[0] for row in sandbox.ingest("get")] == [entry, "index", entry, "none"]
        assert list(sandbox.derive("y", [("r", ["a"])])) == [str(dataset.root)]
    assert not list(dataset.root.rglob("__pycache__"))


def test_staged_neighbours_are_imported_whatever_is_on_disk(dataset: Dataset) -> None:
    (dataset.root / "helper.py").write_text("X = 'disk'")
    text = "import helper, schema, pack.deep, folder.inner\nfrom pack import deep\nfrom json import dumps\n" + ONE
    text += (
        "    @ingest\n    def get(): return [helper.X, schema.X, deep.X, pack.deep.X, folder.inner.X, len(dumps(1))]\n"
    )
    neighbours = {
        "helper.py": "X = 1",
        "schema.py": "X = 2",
        "pack/__init__.py": "from . import deep",
        "pack/deep.py": "X = 3",
        "folder/inner.py": "X = 4",
    }
    with dataset.sandbox(text, neighbours) as sandbox:
        assert [row[0] for row in sandbox.ingest("get")] == [1, 2, 3, 3, 4, 1]


def test_a_folder_of_the_repository_hides_no_installed_package(dataset: Dataset) -> None:
    text = "import hypothesis\n" + ONE + "    @ingest\n    def get(): return [hasattr(hypothesis, 'given') + 0]\n"
    with dataset.sandbox(text, {"hypothesis/notes.py": ""}) as sandbox:
        assert list(sandbox.ingest("get")) == [[1]]


def test_a_neighbour_that_is_not_staged_is_named(dataset: Dataset) -> None:
    (dataset.root / "helper.py").write_text("X = 1")
    assert failure(dataset, "import helper\n" + ONE) == (
        "index.py:1: helper.py is not staged, and what is committed must work without it: git add helper.py"
    )
    assert "no module named 'nowhere_at_all' in " in failure(dataset, "import nowhere_at_all\n" + ONE)


def test_exceptions_are_placed_in_the_users_own_files(dataset: Dataset) -> None:
    text = "import helper\n" + ONE + "    def y(x) -> int:\n        return helper.half(x - 2)\n"
    assert failure(dataset, text, {"helper.py": "\n\ndef half(x):\n    return 1 // x\n"}) == (
        "helper.py:4, in half: ZeroDivisionError: integer division or modulo by zero\n"
        "the transform y for row r2 failed; nothing was changed"
    )
    ingest = ONE + "    @ingest\n    def get():\n        yield 1\n        yield open('gone')\n"
    assert failure(dataset, ingest) == (
        "index.py:9, in get: FileNotFoundError: [Errno 2] No such file or directory: 'gone'\n"
        "the ingest get at row 2 failed; nothing was changed"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (", "index.py:1: SyntaxError: "),
        ("x = 1\ny = nope", "index.py:2: NameError: name 'nope' is not defined"),
        (HEAD + "class D: ...", "index.py: no dataset is here: put @dataset above its class"),
        (
            ONE + "    def y(x) -> int: return 'a'\n",
            "index.py:6: the transform y for row r1: 'a' (str), but the type is int",
        ),
        (ONE + "    def y(x) -> str: ...\n", "index.py:6: the transform y for row r1: None, but the type is str"),
        (ONE + "    def y(x) -> File[png]: return b'GIF89a'\n", "the content is a gif file, but the type is File[png]"),
        (ONE + "    def y(x) -> str: return (c for c in 'ab')\n", "(generator), but the type is str"),
        (
            ONE + "    @ingest\n    def get(): return ['a']\n",
            "the ingest get: x, row 1: 'a' (str), but the type is int",
        ),
        (ONE + "    @ingest\n    def get(): return [1], [2]\n", "the ingest get: returned 2 columns"),
        (
            ONE + "    @ingest\n    def get(): return [{'x': 1}, {}]\n",
            "x, row 2: no value, and the field has no default",
        ),
        (ONE + "    @ingest\n    def get(): sys.exit(3)\n", "it called sys.exit(3)"),
        (ONE + "    @ingest\n    def get(): raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        (
            ONE + "for n in 'ab': pass\nD.y = None\nexec('def y(x) -> int: return 1')\nD.y = y\n",
            "write it with `def` in the class D",
        ),
    ],
)
def test_failures(dataset: Dataset, text: str, message: str) -> None:
    assert message in failure(dataset, text)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL (the system does that when memory runs out)"),
        ("os.abort()", "was ended by SIGABRT; the last it printed: last words"),
        ("os._exit(7)", "ended early, with exit code 7; the last it printed: last words"),
    ],
)
def test_a_crash_is_a_report(dataset: Dataset, code: str, message: str) -> None:
    text = ONE + f"    @ingest\n    def get():\n        print('last words')\n        {code}\n"
    found = failure(dataset, text)
    assert message in found
    assert "in the ingest get" in found


def test_a_hang_is_ended(dataset: Dataset) -> None:
    text = "import time\n" + ONE + "    @ingest\n    def get(): time.sleep(60)\n"
    assert "sent nothing for 0.5 seconds and was ended" in failure(dataset, text, timeout=0.5)


def test_nothing_it_started_outlives_it(dataset: Dataset) -> None:
    text = "import subprocess\n" + ONE + "    @ingest\n    def get():\n"
    text += "        return [subprocess.Popen(['sleep', '60']).pid]\n"
    with dataset.sandbox(text) as sandbox:
        ((pid,),) = sandbox.ingest("get")
    assert _is_gone(pid)
    forked = ONE + "    @ingest\n    def get():\n        if os.fork() == 0:\n            import time; time.sleep(60)\n"
    forked += "        os._exit(1)\n"
    start = time.monotonic()
    assert "exit code 1" in failure(dataset, forked)
    assert time.monotonic() - start < 10


def _is_gone(pid: object) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_an_interruption_does_not_wait_for_user_code(dataset: Dataset) -> None:
    text = (
        "import time\n"
        + ONE
        + "    @ingest\n    def get():\n        time.sleep(0.1)\n        yield 1\n        time.sleep(60)\n"
    )
    start = time.monotonic()

    def interrupted() -> None:
        with dataset.sandbox(text) as sandbox:
            next(sandbox.ingest("get"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 1.9


def test_an_interpreter_that_is_not_there(dataset: Dataset) -> None:
    message = failure(dataset, ONE, python="/nowhere/python")
    assert "/nowhere/python: No such file or directory. Choose another: git config datasets.python" in message


def test_an_interpreter_that_is_too_old(dataset: Dataset, tmp_path: Path) -> None:
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = -c ] && printf 3.8 && exit 0\nexit 1\n')
    old.chmod(0o755)
    assert f"{old} is Python 3.8; index.py needs 3.10 or newer" in failure(dataset, ONE, python=str(old))


def test_our_own_packages_do_not_leak_into_the_users_interpreter(dataset: Dataset) -> None:
    text = ONE + "    @ingest\n    def get():\n"
    text += "        return [int(any('gds_lfs' in p for p in sys.path)), int('msgspec' in sys.modules)]\n"
    with dataset.sandbox(text) as sandbox:
        assert list(sandbox.ingest("get")) == [[0], [0]]


def test_values_of_any_size_do_not_block_the_pipes(dataset: Dataset) -> None:
    text = HEAD + "@dataset\nclass D:\n    x: str\n    def y(x) -> str: return x * 2\n"
    with dataset.sandbox(text) as sandbox:
        rows = [(str(number), ["x" * 300_000]) for number in range(12)]
        assert [len(str(value)) for value in sandbox.derive("y", rows)] == [600_000] * 12


def test_user_code_may_spawn_processes_of_its_own(dataset: Dataset) -> None:
    text = "import multiprocessing, helper\n" + ONE + "    @ingest\n    def get():\n"
    text += "        with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
    text += "            return pool.map(helper.double, [1, 2]) + pool.map(treble, [1, 2])\n"
    text += "def treble(x): return 3 * x\n"
    with dataset.sandbox(text, {"helper.py": "def double(x): return 2 * x\n"}, timeout=60) as sandbox:
        assert list(sandbox.ingest("get")) == [[2], [4], [3], [6]]

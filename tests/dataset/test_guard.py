from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gds_lfs.dataset import guard


def run(code: str, limit: int = 0) -> tuple[list[dict[str, int]], bytes]:
    """What the guard says of Python code that it runs, and what that prints."""
    process, status = start(code, limit)
    printed, _ = process.communicate(timeout=30)
    return said(status), printed


def start(code: str, limit: int = 0, program: str = sys.executable) -> tuple[subprocess.Popen[bytes], int]:
    reader, writer = os.pipe()
    command = [sys.executable, "-I", "-S", guard.__file__, str(writer), str(limit), program, "-I", "-S", "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=(writer,))
    os.close(writer)
    return process, reader


def said(status: int) -> list[dict[str, int]]:
    with os.fdopen(status, "rb") as file:
        return [json.loads(line) for line in file]


def is_there(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def wait_until_gone(pid: int) -> None:
    until = time.monotonic() + 10
    while is_there(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("code", "end"),
    [("print(1)", 0), ("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 11)", -11)],
)
def test_it_says_how_the_command_ended(code: str, end: int) -> None:
    *_, last = run(code)[0]
    assert os.waitstatus_to_exitcode(last["end"]) == end
    assert not last["over"]


def test_a_command_that_is_none() -> None:
    process, status = start("", program="/nowhere/python")
    process.communicate(timeout=30)
    first, *_ = said(status)
    assert os.strerror(first["exec"]) == "No such file or directory"


def test_orphans_are_ended_whatever_session_they_are_in() -> None:
    code = (
        "import os, sys\nif not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        "    os.write(1, str(os.getpid()).encode() + b'\\n'); os.close(1)\n    import time; time.sleep(100)\n"
        "os.wait()"
    )
    _, printed = run(code)
    assert not is_there(int(printed))


def test_memory_is_that_of_all_processes() -> None:
    eater = "x = bytearray(b'x') * (100 << 20); import time; time.sleep(30)"
    code = f"import subprocess, sys; [subprocess.Popen([sys.executable, '-c', {eater!r}]) for _ in '123']; "
    began = time.monotonic()
    *_, last = run(code + "import time; time.sleep(30)", 250 << 20)[0]
    assert last["over"]
    assert 250 << 20 < last["peak"] < 900 << 20
    assert time.monotonic() - began < 20


def test_pages_that_are_shared_count_once() -> None:
    code = (
        "import os, time\nx = bytearray(b'x') * (100 << 20)\n"
        "if os.fork() and os.fork() and os.fork(): time.sleep(0.5)\nelse: time.sleep(0.4)"
    )
    *_, last = run(code, 250 << 20)[0]
    assert not last["over"]


def test_the_command_ends_when_nobody_listens_any_more() -> None:
    process, status = start("import os, time; os.write(1, str(os.getpid()).encode() + b'\\n'); time.sleep(100)")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    os.close(status)
    process.wait(timeout=30)
    process.stdout.close()
    assert not is_there(pid)


def test_the_command_ends_when_the_guard_is_killed() -> None:
    process, status = start("import os, time; os.write(1, str(os.getpid()).encode() + b'\\n'); time.sleep(100)")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.wait(timeout=30)
    process.stdout.close()
    os.close(status)
    wait_until_gone(pid)


def test_the_command_may_say_where_it_is_before_it_is_ended(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    code = (
        f"import faulthandler, os, signal, time\nfaulthandler.register(signal.SIGUSR2, open({str(stacks)!r}, 'w'))\n"
        "def hang():\n    os.write(1, b'here\\n')\n    time.sleep(100)\nhang()"
    )
    process, status = start(code)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    process.stdout.close()
    os.close(status)
    assert "line 5 in hang" in stacks.read_text()

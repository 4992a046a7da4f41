from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from gds_lfs.porcelain.beside import beside

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the tests did not run in a process that has some."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


@pytest.mark.skipif(sys.platform != "linux", reason="done here elsewhere")
@pytest.mark.usefixtures("no_threads")
def test_the_result_comes_from_another_process() -> None:
    with beside(lambda: (os.getpid(), {b"\0": "ä"}, list(range(100_000)))) as result:
        pid, texts, numbers = result()
    assert pid != os.getpid()
    assert texts == {b"\0": "ä"}
    assert numbers == list(range(100_000))


def test_where_there_are_threads_it_is_done_here() -> None:
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    with beside(os.getpid) as result:
        assert result() == os.getpid()
    waiting.set()
    thread.join()


@pytest.mark.usefixtures("no_threads")
def test_what_fails_is_raised_here(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"), beside(work) as result:
        result()
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("no_threads")
def test_what_marshal_does_not_take_is_done_here() -> None:
    with beside(lambda: (os.getpid(), object())) as result:
        assert result()[0] == os.getpid()


@pytest.mark.usefixtures("no_threads")
def test_nobody_waits_for_work_that_is_not_asked_for() -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match="before"), beside(lambda: time.sleep(60)):
        raise ValueError("before")
    assert time.monotonic() - began < 30


@pytest.mark.skipif(sys.platform != "linux", reason="done here elsewhere")
def test_the_other_process_ends_with_this_one() -> None:
    """Whoever reads what both may print would wait for it otherwise."""
    script = """
import os
from gds_lfs.porcelain.beside import beside
with beside(lambda: bytes(1_000_000)):
    os._exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30, check=False)
    assert done.returncode == 7
    assert done.stderr == b""

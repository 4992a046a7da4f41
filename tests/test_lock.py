from __future__ import annotations

import os
import threading
import time

import pytest

from gds_lfs.lock import FileLock


def test_a_lock_is_one_process_and_goes_with_it(tmp_path):
    path = tmp_path / "it.lock"
    holder, other = FileLock(path), FileLock(path)
    assert not other.take()
    holder.create()
    assert not other.take()
    holder.release()
    assert other.take()
    with pytest.raises(FileExistsError):
        FileLock(path).create()
    other.remove()
    assert not path.exists()
    assert not holder.take()


def test_waiting_for_a_lock(tmp_path):
    path = tmp_path / "turn.lock"
    holder, other = FileLock(path), FileLock(path)
    assert holder.wait(0)
    assert not other.wait(0.01)
    threading.Timer(0.1, holder.release).start()
    begin = time.monotonic()
    assert other.wait(60)
    assert time.monotonic() - begin < 30
    assert path.exists()
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "no folder" / "turn.lock").wait(0)


def test_a_lock_on_a_file_that_was_replaced_is_none(tmp_path, monkeypatch):
    path = tmp_path / "it.lock"
    path.touch()
    real = os.open

    def open_then_replace(*arguments):
        descriptor = real(*arguments)
        monkeypatch.undo()
        path.unlink()
        path.touch()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_replace)
    assert not FileLock(path).take()
    assert FileLock(path).take()

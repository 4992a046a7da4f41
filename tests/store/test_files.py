from __future__ import annotations

import os

import pytest

from gds_lfs.files import write_all
from gds_lfs.store.files import OpenFiles, open_to_read, read_at


def test_reading_at_an_offset(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = open_to_read(path)
    assert read_at(descriptor, 3, 4) == b"3456"
    assert read_at(descriptor, 8, 100) == b"89"
    assert read_at(descriptor, 50, 1) == b""
    os.close(descriptor)


def test_few_files_stay_open(tmp_path):
    files = OpenFiles()
    for i in range(100):
        (tmp_path / str(i)).write_bytes(b"%d" % i)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert [files.read(tmp_path / str(i), 0, 9) for i in range(100)] == [b"%d" % i for i in range(100)]
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 32
    (tmp_path / "99").unlink()
    assert files.read(tmp_path / "99", 0, 9) == b"99"
    files.forget(tmp_path / "99")
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "99", 0, 9)
    files.close()


def test_short_writes_are_continued(tmp_path, monkeypatch):
    written = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: written(descriptor, bytes(data)[:7]))
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    write_all(descriptor, bytes(range(100)))
    write_all(descriptor, b"")
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == bytes(range(100))

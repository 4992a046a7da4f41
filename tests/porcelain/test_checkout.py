from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from gds_lfs.porcelain import checkout


@pytest.fixture(params=["nameless", "named"])
def kind(request, monkeypatch):
    """Both ways to write a file beside its place: this platform's own, and that of those that cannot."""
    if request.param == "named":
        monkeypatch.setattr(checkout, "_NAMELESS", None)
    return request.param


def test_a_file_is_replaced_whole(tmp_path, kind):
    target = os.fsencode(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(b"pointer")
    stat = checkout.replace(target, iter([b"con", b"tent"]), executable=True)
    assert (tmp_path / "a.bin").read_bytes() == b"content"
    assert stat.st_size == 7
    assert stat.st_mode & 0o100
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path, kind):
    name = "x" * os.pathconf(tmp_path, "PC_NAME_MAX")
    checkout.replace(os.fsencode(tmp_path / name), iter([b"content"]))
    assert os.listdir(tmp_path) == [name]


def test_what_ends_early_leaves_the_old_file_alone(tmp_path, kind):
    def pieces():
        yield b"con"
        raise KeyboardInterrupt

    (tmp_path / "a.bin").write_bytes(b"pointer")
    with pytest.raises(KeyboardInterrupt):
        checkout.replace(os.fsencode(tmp_path / "a.bin"), pieces())
    assert (tmp_path / "a.bin").read_bytes() == b"pointer"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_an_absent_folder_is_an_error(tmp_path, kind):
    with pytest.raises(FileNotFoundError):
        checkout.replace(os.fsencode(tmp_path / "gone/a.bin"), iter([b"content"]))


def test_permissions_are_those_of_a_new_file(tmp_path, kind):
    (tmp_path / "plain").touch()
    checkout.replace(os.fsencode(tmp_path / "a.bin"), iter([b"content"]))
    assert (tmp_path / "a.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(sys.platform != "linux", reason="nameless files are Linux's")
def test_its_first_name_is_outside_the_work_tree(monkeypatch):
    """A process that is killed before the file has its own leaves nothing there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:  # a file system that is known to have nameless files
        work, scratch = Path(root, "work"), Path(root, "scratch")
        work.mkdir()
        scratch.mkdir()
        seen = []
        rename = os.replace

        def replace(source, target):
            seen.append((os.listdir(work), len(os.listdir(scratch))))
            rename(source, target)

        monkeypatch.setattr(os, "replace", replace)
        checkout.replace(os.fsencode(work / "a.bin"), iter([b"content"]), scratch=scratch)
        checkout.replace(os.fsencode(work / "b.bin"), iter([b"content"]), scratch=Path(root, "nowhere"))
        assert seen[0] == ([], 1)
        assert len(seen[1][0]) == 2, "beside it where that is no place"
        assert sorted(os.listdir(work)) == ["a.bin", "b.bin"]
        assert os.listdir(scratch) == []

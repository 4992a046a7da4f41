from __future__ import annotations

import os

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

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from gds_lfs import File
from gds_lfs.dataset.fieldtype import parse_spelling
from gds_lfs.dataset.rows import ReturnError
from gds_lfs.dataset.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n"
JPG = b"\xff\xd8\xff"


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    return Spool(str(folder))


def test_each_form_of_a_file(spool: Spool, tmp_path: Path) -> None:
    path = tmp_path / "a.PNG"
    path.write_bytes(PNG + b"x")
    declared = parse_spelling("File[png]")
    for value in (path, str(path), "a.PNG", File(path), PNG + b"x", bytearray(PNG + b"x"), io.BytesIO(PNG + b"x")):
        name = spool.take(value, declared)
        assert name.endswith(".png")
        assert (tmp_path / "spool" / name).read_bytes() == PNG + b"x"
    assert len(list((tmp_path / "spool").iterdir())) == 7
    assert path.read_bytes() == PNG + b"x"


def test_a_file_that_is_used_again_for_the_next_row(spool: Spool, tmp_path: Path) -> None:
    names = []
    for number in range(2):
        (tmp_path / "out.png").write_bytes(PNG + bytes([number]))
        names.append(spool.take("out.png", parse_spelling("File[png]")))
    assert [(tmp_path / "spool" / name).read_bytes()[-1] for name in names] == [0, 1]


def test_large_files_are_whole(spool: Spool, tmp_path: Path) -> None:
    data = PNG + os.urandom(3_000_000)
    (tmp_path / "big").write_bytes(data)
    assert (tmp_path / "spool" / spool.take("big", parse_spelling("File[png]"))).read_bytes() == data


def test_an_image_is_saved_as_the_first_kind_or_as_its_own(spool: Spool, tmp_path: Path) -> None:
    image = Image.new("RGB", (2, 2))
    assert spool.take(image, parse_spelling("File[jpg | png]")).endswith(".jpg")
    image.save(tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as opened:
        assert spool.take(opened, parse_spelling("File[jpg | png]")).endswith(".png")
        assert spool.take(opened, parse_spelling("File[jpg]")).endswith(".jpg")


@pytest.mark.parametrize(
    ("spelling", "name", "extension"),
    [
        ("File[png | jpg]", "x.jpeg", "jpg"),
        ("File[txt | csv]", "x.csv", "csv"),
        ("File[txt | csv]", "x.dat", "txt"),
        ("File[any_file]", "x.JPEG", "jpeg"),
        ("File[any_file]", "x.tar.zst", "zst"),
        ("File[any_file]", "x", "bin"),
        ("File[any_file]", "x.a b", "bin"),
    ],
)
def test_extensions(spool: Spool, tmp_path: Path, spelling: str, name: str, extension: str) -> None:
    (tmp_path / name).write_bytes(JPG)
    assert spool.take(name, parse_spelling(spelling)) == f"1.{extension}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("there.png", r"there.png is a jpg file, but the type is File\[png\]"),
        (b"hello", r"the content is text \('hello'\), but the type is File\[png\]"),
        (b"", "is an empty file"),
        ("gone.png", "the file gone.png does not exist"),
        (".", "the file . is a folder"),
        (3, "int is no file: give a path"),
        (["there.png"], "list is no file"),
    ],
)
def test_refused(spool: Spool, tmp_path: Path, value: object, message: str) -> None:
    (tmp_path / "there.png").write_bytes(JPG)
    with pytest.raises(ReturnError, match=message):
        spool.take(value, parse_spelling("File[png]"))

from __future__ import annotations

import gzip
import io
import json
import wave
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gds_lfs.dataset.kinds import KINDS, describe, recognise


def image(name: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 3)).save(out, name)
    return out.getvalue()


def a_wave() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"\0\1" * 50)
    return out.getvalue()


def a_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("x", "y")
    return out.getvalue()


HEADER = json.dumps({"__metadata__": {}}).encode()

SAMPLES = {
    "png": image("PNG"),
    "jpg": image("JPEG"),
    "gif": image("GIF"),
    "bmp": image("BMP"),
    "webp": image("WEBP"),
    "tiff": image("TIFF"),
    "pdf": image("PDF"),
    "wav": a_wave(),
    "mp3": b"ID3\x04\x00\x00\x00\x00\x00\x00",
    "flac": b"fLaC\x00\x00\x00\x22",
    "ogg": b"OggS\x00\x02",
    "mp4": b"\x00\x00\x00\x18ftypisom",
    "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}",
    "npz": a_zip(),
    "parquet": b"PAR1\x15\x04",
    "h5": b"\x89HDF\r\n\x1a\n\x00",
    "safetensors": len(HEADER).to_bytes(8, "little") + HEADER,
    "zip": a_zip(),
    "gz": gzip.compress(b"x"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_of_its_own_kind_and_of_no_other(name: str) -> None:
    found = [kind.name for kind in KINDS.values() if kind.is_signature and kind.matches(SAMPLES[name])]
    same_content = {"npz": ["npz", "zip"], "zip": ["npz", "zip"]}
    assert found == same_content.get(name, [name])


def test_every_kind_with_a_signature_has_a_sample() -> None:
    assert set(SAMPLES) == {name for name, kind in KINDS.items() if kind.is_signature}


def test_an_mpeg_frame_without_a_tag_is_mp3_and_a_jpg_or_utf16_text_is_not() -> None:
    assert KINDS["mp3"].matches(b"\xff\xfb\x90\x00")
    assert not KINDS["mp3"].matches(SAMPLES["jpg"])
    assert not KINDS["mp3"].matches("x".encode("utf-16"))


def test_text_kinds() -> None:
    assert KINDS["txt"].matches(b"hello")
    assert KINDS["csv"].matches(b"a,b\n")
    assert KINDS["json"].matches(b'\xef\xbb\xbf  {"a": 1}')
    assert not KINDS["json"].matches(b"hello")
    assert not KINDS["json"].matches(b"")
    assert not KINDS["txt"].matches(b"a\0b")
    assert not KINDS["csv"].matches(SAMPLES["png"])


def test_the_extension_decides_between_kinds_that_look_alike_and_nothing_else() -> None:
    declared = [KINDS["csv"], KINDS["txt"], KINDS["png"]]
    assert recognise(b"a,b", "txt", declared) is KINDS["txt"]
    assert recognise(b"a,b", "TSV", declared) is KINDS["csv"]
    assert recognise(b"a,b", "png", declared) is KINDS["csv"]
    assert recognise(SAMPLES["jpg"], "png", declared) is None


def test_describe() -> None:
    assert describe(SAMPLES["jpg"]) == "a jpg file"
    assert describe(b"") == "an empty file"
    assert describe(b"<html>") == "text ('<html>')"
    assert "00 01 02" in describe(b"\0\1\2")


def test_kinds_join_in_the_order_written_without_repeats() -> None:
    png, jpg, gif = KINDS["png"], KINDS["jpg"], KINDS["gif"]
    assert str(png | jpg | gif | png) == "png | jpg | gif"
    assert (png | jpg) | (jpg | gif) == png | jpg | gif


@given(st.binary(max_size=64))
def test_no_head_breaks_a_check(head: bytes) -> None:
    assert KINDS["any_file"].matches(head)
    for kind in KINDS.values():
        assert kind.matches(head) in (True, False)
    assert describe(head)

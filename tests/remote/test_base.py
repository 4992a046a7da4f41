from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gds_lfs.errors import RemoteError
from gds_lfs.remote.base import (
    FORMAT_KEY,
    check_format,
    index_key,
    open_remote,
    pack_key,
    parse_index_key,
    parse_pack_key,
)
from gds_lfs.remote.s3_options import S3Options, check_region, parse_endpoint

if TYPE_CHECKING:
    from pathlib import Path

ID = bytes(range(32))
HEX = ID.hex()


def test_keys() -> None:
    assert pack_key(ID) == f"packs/00/{HEX}.pack"
    assert index_key(ID) == f"index/{HEX}"
    assert parse_pack_key(pack_key(ID)) == ID
    assert parse_index_key(index_key(ID)) == ID


@pytest.mark.parametrize(
    "key",
    [
        f"packs/01/{HEX}.pack",
        f"packs/00/{HEX}.pack.tmp",
        f"packs/00/{HEX.upper()}.pack",
        f"packs/{HEX}.pack",
        f"packs/00/{HEX}.pack\n",
        "packs/00/Thumbs.db",
        "packs/00/.DS_Store",
        "",
    ],
)
def test_what_is_no_pack(key: str) -> None:
    assert parse_pack_key(key) is None


@pytest.mark.parametrize("key", [f"index/{HEX[:-1]}", f"index/{HEX}~", f"index/a/{HEX}", f"index/{HEX}\n", "index/"])
def test_what_is_no_shard(key: str) -> None:
    assert parse_index_key(key) is None


def test_the_format_file_is_written_once(tmp_path: Path) -> None:
    remote = open_remote("r", tmp_path)
    remote.create()
    check_format(remote)
    assert remote.size(FORMAT_KEY) is None
    check_format(remote, create=True)
    check_format(remote)
    assert remote.get(FORMAT_KEY) == b'{"format": "git-datasets", "version": 1}\n'


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    remote = open_remote("r", tmp_path)
    remote.create()
    remote.put(FORMAT_KEY, b'{"format": "git-datasets", "version": 7, "more": []}')
    with pytest.raises(RemoteError, match=r"format 7.*upgrade git-datasets"):
        check_format(remote, create=True)


@pytest.mark.parametrize(
    "text", [b"", b"\xff", b"[]", b"{}", b'{"format": "x", "version": 1}', b'{"format": "git-datasets"}',
             b'{"format": "git-datasets", "version": true}', b'{"format": "git-datasets", "version": 0}']
)  # fmt: skip
def test_a_foreign_format_file_is_refused(tmp_path: Path, text: bytes) -> None:
    remote = open_remote("r", tmp_path)
    remote.create()
    remote.put(FORMAT_KEY, text)
    with pytest.raises(RemoteError, match="not written by git-datasets"):
        check_format(remote)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    base = tmp_path / "repo"
    assert open_remote("data", base).url == str(base / "data")
    assert open_remote("../data", base).url == str(tmp_path / "data")
    assert open_remote(str(tmp_path / "x"), base).url == str(tmp_path / "x")
    assert open_remote("~/data", base).url == str(tmp_path / "home" / "data")
    assert open_remote(f"file://{tmp_path}/a%20b", base).url == str(tmp_path / "a b")
    assert open_remote(f"FILE://localhost{tmp_path}/x", base).url == str(tmp_path / "x")
    assert open_remote("a b/ü", base).url == str(base / "a b" / "ü")


def test_equal_places_have_equal_urls(tmp_path: Path) -> None:
    assert open_remote("./d/../data/", tmp_path).url == open_remote("data", tmp_path).url


def test_a_drive_letter_is_no_scheme(tmp_path: Path) -> None:
    assert open_remote("C:/data", tmp_path).url == str(tmp_path / "C:/data")
    assert open_remote("c://data", tmp_path).url == str(tmp_path / "c:/data")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://", "no bucket's name"),
        ("s3://a/x", "no bucket's name"),
        ("s3://arn:aws:s3:us-east-1:1:accesspoint/x", "a bucket and a prefix alone"),
        ("s3://bucket/a\nb", "control characters"),
        ("s3://bucket/a/../b", "between its slashes"),
        ("https://example.org/x", "https://"),
        ("file://server/share", "another machine"),
        ("file:///a?b", "%3F"),
        ("file://", "names no folder"),
        ("", "empty"),
        ("  ", "empty"),
        ("~nobody-of-that-name/x", "home folder"),
    ],
)
def test_urls_that_name_no_remote(tmp_path: Path, url: str, words: str) -> None:
    with pytest.raises(RemoteError, match=words):
        open_remote(url, tmp_path)


@pytest.mark.parametrize("url", ["s3://key:hunter2@bucket/x", "https://me:hunter2@example.org/x"])
def test_a_password_in_a_url_is_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(RemoteError) as raised:
        open_remote(url, tmp_path)
    assert "hunter2" not in str(raised.value)


def test_buckets(tmp_path: Path) -> None:
    assert open_remote("s3://bucket", tmp_path).url == "s3://bucket"
    assert open_remote("S3://bucket/", tmp_path).url == "s3://bucket"
    assert open_remote("s3://bucket//a/b//", tmp_path).url == "s3://bucket/a/b"
    other = open_remote("s3://bucket/a", tmp_path, S3Options(endpoint="http://127.0.0.1:9"))
    assert other.url == "s3://bucket/a (http://127.0.0.1:9)"


@pytest.mark.parametrize(
    ("endpoint", "same"),
    [
        ("https://S3.Example.org/", "https://s3.example.org"),
        ("HTTP://127.0.0.1:80", "http://127.0.0.1"),
        ("https://h:443/path/", "https://h/path"),
        ("http://[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_a_server_has_one_spelling(endpoint: str, same: str) -> None:
    assert parse_endpoint(endpoint) == same


@pytest.mark.parametrize(
    "endpoint", ["s3.example.org", "ftp://h", "http://u:hunter2@h", "http://h/?x", "http://h\n", ""]
)
def test_what_is_no_server(endpoint: str) -> None:
    with pytest.raises(RemoteError, match="has the form") as raised:
        parse_endpoint(endpoint)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("region", ["", "a.b", "evil.example/x", "x" * 64, "a\n"])
def test_what_is_no_region(region: str) -> None:
    with pytest.raises(RemoteError, match="no region"):
        check_region(region)

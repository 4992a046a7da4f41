"""The Remote protocol, the layout of its keys, and `open_remote`.

A remote is a flat map from keys to immutable objects; it needs no server of ours and no locks::

    git-datasets.json           {"format": "git-datasets", "version": 1}
    packs/<2 hex>/<64 hex>.pack the pack whose SHA-256 is the name
    index/<64 hex>              the index shard whose SHA-256 is the name (format in shard.py)

Keys are ASCII with '/' between their parts. An object is never changed once it is there, so an upload that
finds its key taken by as many bytes has nothing to do, and two writers of one key cannot harm each other.
Anything else found under `packs/` or `index/` is someone else's and left alone.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from gds_lfs.errors import RemoteError, TransientRemoteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gds_lfs.remote.draft import Draft
    from gds_lfs.remote.s3_options import S3Options

__all__ = [
    "FORMAT_KEY",
    "INDEX_PREFIX",
    "PACKS_PREFIX",
    "AbsentRemoteError",
    "Entry",
    "NoSuchKeyError",
    "Remote",
    "ShortBodyError",
    "SlowDownError",
    "Source",
    "check_format",
    "index_key",
    "open_remote",
    "pack_key",
    "parse_index_key",
    "parse_pack_key",
]

FORMAT_KEY = "git-datasets.json"
INDEX_PREFIX = "index/"
PACKS_PREFIX = "packs/"
FORMAT_VERSION = 1

#: What `put` stores: bytes, or a seekable file that is read from its start to its end.
Source = bytes | BinaryIO

_INDEX_KEY = re.compile(r"index/([0-9a-f]{64})", re.ASCII)
_PACK_KEY = re.compile(r"packs/([0-9a-f]{2})/(\1[0-9a-f]{62})\.pack", re.ASCII)
# One letter before the colon is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)


class NoSuchKeyError(RemoteError):
    """The remote works, but holds no object under this key."""


class AbsentRemoteError(RemoteError):
    """There is nothing at the URL. The first upload makes it."""


class ShortBodyError(RemoteError):
    """The object ends before the bytes asked for do. (A body cut off on its way is a transient error.)"""


class SlowDownError(TransientRemoteError):
    """The server is well, but wants fewer requests for a while."""


class Entry(NamedTuple):
    """One object in a listing."""

    key: str
    size: int


class Remote(Protocol):
    """What a place for data can do. Every method may raise RemoteError, or TransientRemoteError where trying
    again may help; methods may be called from several threads at once.
    """

    @property
    def url(self) -> str:
        """The place in the user's words; equal for equal places, so that caches can be kept by it."""

    @property
    def parallel(self) -> int:
        """How many requests are worth having under way at once."""

    @property
    def traffic(self) -> Mapping[str, int]:
        """How many requests of each kind were sent so far; none where a place takes no requests."""

    def prepare(self) -> None:
        """Requests will follow: begin what takes time before the first one, without waiting for it. Never fails."""

    def create(self) -> None:
        """Make the place ready for a first `put`, if it is not yet. Costs nothing where it is."""

    def put(self, key: str, source: Source) -> None:
        """Store an object whole or not at all; a key that already holds as many bytes is left as it is."""

    def draft(self, scratch: Path) -> Draft:
        """An object that is put later; `scratch` is a folder of this machine for what cannot be written there yet."""

    def get(self, key: str) -> bytes:
        """The whole object. Raises NoSuchKeyError."""

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`. Raises NoSuchKeyError, ShortBodyError."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """All objects whose key starts with `prefix`, in no particular order."""

    def size(self, key: str) -> int | None:
        """The object's size, or None if there is no such key."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is gone already is no error."""


def pack_key(pack: bytes) -> str:
    """The key of the pack with this id."""
    name = pack.hex()
    return f"{PACKS_PREFIX}{name[:2]}/{name}.pack"


def index_key(shard: bytes) -> str:
    """The key of the index shard with this id."""
    return f"{INDEX_PREFIX}{shard.hex()}"


def parse_pack_key(key: str) -> bytes | None:
    """The pack id in a key, or None if the key is no pack's."""
    match = _PACK_KEY.fullmatch(key)
    return bytes.fromhex(match[2]) if match else None


def parse_index_key(key: str) -> bytes | None:
    """The shard id in a key, or None if the key is no shard's."""
    match = _INDEX_KEY.fullmatch(key)
    return bytes.fromhex(match[1]) if match else None


def check_format(remote: Remote, *, create: bool = False) -> None:
    """Make sure that this version understands what is on the remote.

    An empty remote is understood; `create` writes the format file there.

    Raises RemoteError for a newer format, and for a format file that is not ours.
    """
    try:
        text = remote.get(FORMAT_KEY)
    except NoSuchKeyError:
        if create:
            remote.put(FORMAT_KEY, encode_format())
        return
    version = _decode_format(text)
    if version is None:
        raise RemoteError(
            f"{FORMAT_KEY} on {remote.url} was not written by git-datasets: "
            "set datasets.remote to another place, or move that file away."
        )
    if version > FORMAT_VERSION:
        raise RemoteError(
            f"{remote.url} has format {version}, this git-datasets knows formats up to {FORMAT_VERSION}: "
            "upgrade git-datasets."
        )


def encode_format() -> bytes:
    """The text of the format file."""
    return b'{"format": "git-datasets", "version": %d}\n' % FORMAT_VERSION


def _decode_format(text: bytes) -> int | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("format") != "git-datasets":
        return None
    version = value.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) and version >= 1 else None


def open_remote(url: str, base: Path, s3: S3Options | None = None) -> Remote:
    """The remote that a URL names. Nothing is read or written yet.

    Folders may be given as a path (absolute, starting with `~`, or relative to `base`) or as a `file://` URL;
    `s3` is how to reach an `s3://bucket/prefix`.

    Raises RemoteError for a URL that names nothing this version can use.
    """
    from gds_lfs.remote.directory import DirectoryRemote  # it imports this module

    if not url.strip() or "\0" in url:
        raise RemoteError("The dataset remote's URL is empty: `git datasets link` a folder or an s3:// URL.")
    if url.lower().startswith("s3:") and not url.lower().startswith("s3://"):
        raise RemoteError(f"{url}: an S3 prefix is written s3://bucket/prefix.")
    scheme = _SCHEME.match(url)
    if scheme is None:
        return DirectoryRemote(_folder(url, base))
    if scheme[1].lower() == "file":
        return DirectoryRemote(_folder(_file_url_path(url), base))
    if scheme[1].lower() == "s3":
        from gds_lfs.remote.s3 import S3Remote
        from gds_lfs.remote.s3_options import S3Options, parse_url

        return S3Remote(parse_url(url), s3 or S3Options())
    shown = re.sub(r"//[^/@]*@", "//", url)  # a password may stand there
    raise RemoteError(f"{shown}: {scheme[1]}:// is no dataset remote; `git datasets link` a folder or an s3:// URL.")


def _folder(path: str, base: Path) -> Path:
    try:
        expanded = Path(path).expanduser()
    except RuntimeError as error:
        raise RemoteError(f"{path}: there is no such user's home folder.") from error
    # abspath tidies `..` without following links: the folder need not exist yet.
    return Path(os.path.abspath(base / expanded))


def _file_url_path(url: str) -> str:
    from urllib.parse import urlsplit  # only this form of URL needs it
    from urllib.request import url2pathname

    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise RemoteError(f"{url}: file:// cannot name another machine; mount the folder and give its path.")
    if parts.query or parts.fragment:
        raise RemoteError(f"{url}: write '?' as %3F and '#' as %23 after file://, or give the plain path.")
    path = url2pathname(parts.path)
    if not path:
        raise RemoteError(f"{url}: the URL names no folder.")
    return path

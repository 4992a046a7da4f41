"""The kinds of files a dataset knows, told apart by how their content begins, never by their name.

This is the one registry of kinds: a new one is an entry of `KINDS` (and a name in `gds_lfs/__init__.py`).
Standard library only: the user's interpreter runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HEAD_SIZE = 4096
"""How many bytes from the start of a file decide its kind."""


class Kind(NamedTuple):
    """One kind of file: its name, its extensions (files are named with the first) and the check of its head."""

    name: str
    extensions: tuple[str, ...]
    check: Callable[[bytes], bool]
    is_signature: bool = True
    """Whether `check` recognises the kind among all others (text kinds only rule binary content out)."""

    def matches(self, head: bytes) -> bool:
        """Whether a file beginning with `head` (up to `HEAD_SIZE` bytes) is of this kind."""
        return self.check(head)

    def __or__(self, other: object) -> KindSet:
        return KindSet((self,)) | other

    def __str__(self) -> str:
        return self.name


class KindSet(NamedTuple):
    """Several kinds, in the order they were written: `png | jpg`."""

    kinds: tuple[Kind, ...]

    def __or__(self, other: object) -> KindSet:
        if isinstance(other, Kind):
            other = KindSet((other,))
        if not isinstance(other, KindSet):
            return NotImplemented
        return KindSet(self.kinds + tuple(kind for kind in other.kinds if kind not in self.kinds))

    def __str__(self) -> str:
        return " | ".join(kind.name for kind in self.kinds)


def _starts(*prefixes: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(prefixes)


def _text(head: bytes) -> bool:
    return b"\0" not in head


def _json(head: bytes) -> bool:
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return _text(head) and first != b"" and first in b'[{"-0123456789tfn'


def _riff(form: bytes) -> Callable[[bytes], bool]:
    return lambda head: head[:4] == b"RIFF" and head[8:12] == form


def _mp3(head: bytes) -> bool:
    # A tag, or an MPEG frame header: eleven set bits, a version that exists and layer III.
    return head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2 and head[1] != 0xEA)


def _safetensors(head: bytes) -> bool:
    # A little-endian length of the header, then the header: JSON.
    return len(head) > 8 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 100_000_000


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("png", ("png",), _starts(b"\x89PNG\r\n\x1a\n")),
        Kind("jpg", ("jpg", "jpeg", "jpe", "jfif"), _starts(b"\xff\xd8\xff")),
        Kind("gif", ("gif",), _starts(b"GIF87a", b"GIF89a")),
        Kind("bmp", ("bmp", "dib"), _starts(b"BM")),
        Kind("webp", ("webp",), _riff(b"WEBP")),
        Kind("tiff", ("tiff", "tif"), _starts(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
        Kind("pdf", ("pdf",), lambda head: b"%PDF-" in head[:1024]),
        Kind("wav", ("wav",), _riff(b"WAVE")),
        Kind("mp3", ("mp3",), _mp3),
        Kind("flac", ("flac",), _starts(b"fLaC")),
        Kind("ogg", ("ogg", "oga", "ogv", "opus"), _starts(b"OggS")),
        Kind("mp4", ("mp4", "m4v", "m4a", "mov"), lambda head: head[4:8] == b"ftyp"),
        Kind("npy", ("npy",), _starts(b"\x93NUMPY")),
        Kind("npz", ("npz",), _starts(b"PK\x03\x04", b"PK\x05\x06")),
        Kind("parquet", ("parquet",), _starts(b"PAR1")),
        Kind("h5", ("h5", "hdf5", "hdf"), _starts(b"\x89HDF\r\n\x1a\n")),
        Kind("safetensors", ("safetensors",), _safetensors),
        Kind("zip", ("zip",), _starts(b"PK\x03\x04", b"PK\x05\x06")),
        Kind("gz", ("gz", "gzip", "tgz"), _starts(b"\x1f\x8b")),
        Kind("json", ("json",), _json, is_signature=False),
        Kind("csv", ("csv", "tsv"), _text, is_signature=False),
        Kind("txt", ("txt", "text", "md"), _text, is_signature=False),
        Kind("any_file", ("bin",), lambda _head: True, is_signature=False),
    )
}


def recognise(head: bytes, extension: str, declared: Iterable[Kind]) -> Kind | None:
    """The declared kind of a file with this head, or None when it is of none of them.

    `extension` (without its dot, from the name the file came under) decides between kinds whose content looks
    the same, such as csv and txt; it never makes a file what its content is not.
    """
    fitting = [kind for kind in declared if kind.matches(head)]
    for kind in fitting:
        if extension.lower() in kind.extensions:
            return kind
    return fitting[0] if fitting else None


def describe(head: bytes) -> str:
    """What a file with this head seems to be, for messages: `a jpg file`, `text`, `an empty file`."""
    if not head:
        return "an empty file"
    for kind in KINDS.values():
        if kind.is_signature and kind.matches(head):
            return f"a {kind.name} file"
    if _text(head):
        return f"text ({head[:24].decode('utf-8', 'replace')!r})"
    return f"unknown binary content (it begins with {head[:8].hex(' ')})"

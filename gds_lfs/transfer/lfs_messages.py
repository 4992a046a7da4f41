"""The messages of git-lfs's custom transfer protocol: one JSON object a line, in both directions.

From git-lfs::

    {"event":"init","operation":"upload","remote":"origin","concurrent":true,"concurrenttransfers":8}
    {"event":"upload","oid":<64 hex>,"size":N,"path":<file to read>,"action":<anything or null>}
    {"event":"download","oid":<64 hex>,"size":N,"action":<anything or null>}
    {"event":"terminate"}

From the agent::

    {}                                                          answer to init; or {"error":{…}}
    {"event":"progress","oid":…,"bytesSoFar":N,"bytesSinceLast":N}
    {"event":"complete","oid":…}                                an upload is done
    {"event":"complete","oid":…,"path":<file to take over>}     a download is done
    {"event":"complete","oid":…,"error":{"code":N,"message":…}}

`action` is what an LFS server said about the object, null where there is no server; both are taken alike, for the
data's place is not the server's to name. Keys that a later git-lfs adds are ignored. Both directions are written down
here, since this program also speaks for git-lfs (see lfs_client.py).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

__all__ = [
    "Answer",
    "Complete",
    "Download",
    "Fault",
    "Init",
    "MalformedMessage",
    "Progress",
    "Ready",
    "Request",
    "Terminate",
    "Upload",
    "decode_answer",
    "decode_ready",
    "decode_request",
    "encode",
]


class MalformedMessage(ValueError):
    """A line that is no message of the protocol. `oid` is the object it speaks of, as far as that can be read."""

    def __init__(self, message: str, oid: str = "") -> None:
        super().__init__(message)
        self.oid = oid


class Fault(msgspec.Struct, frozen=True):
    """Why something failed."""

    code: int
    message: str


class Init(msgspec.Struct, frozen=True, tag_field="event", tag="init"):
    """The first message: what the session is for."""

    operation: str
    remote: str = ""
    concurrent: bool = False
    concurrenttransfers: int = 1


class Upload(msgspec.Struct, frozen=True, tag_field="event", tag="upload"):
    """Send the file at `path`."""

    oid: str
    size: int
    path: str
    action: object = None


class Download(msgspec.Struct, frozen=True, tag_field="event", tag="download"):
    """Bring an object into a file."""

    oid: str
    size: int
    action: object = None


class Terminate(msgspec.Struct, frozen=True, tag_field="event", tag="terminate"):
    """The last message."""


class Ready(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to init."""

    error: Fault | None = None


class Progress(msgspec.Struct, frozen=True, tag_field="event", tag="progress", rename="camel"):
    """So much of an object has moved."""

    oid: str
    bytes_so_far: int
    bytes_since_last: int


class Complete(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="complete"):
    """An object is done with, well or, with `error`, not."""

    oid: str
    path: str | None = None
    error: Fault | None = None


Request = Init | Upload | Download | Terminate
Answer = Progress | Complete

_M = TypeVar("_M")
_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
_ready = msgspec.json.Decoder(Ready)


class _Named(msgspec.Struct):
    oid: str = ""


_named = msgspec.json.Decoder(_Named)


def encode(message: Request | Answer | Ready) -> bytes:
    """The line that carries a message."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """What git-lfs said. Raises MalformedMessage."""
    return _decode(_requests, line)


def decode_answer(line: bytes) -> Answer:
    """What an agent said after init. Raises MalformedMessage."""
    return _decode(_answers, line)


def decode_ready(line: bytes) -> Ready:
    """What an agent said to init. Raises MalformedMessage."""
    return _decode(_ready, line)


def _decode(decoder: msgspec.json.Decoder[_M], line: bytes) -> _M:
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise MalformedMessage(f"no message of the transfer protocol ({error}): {_shown(line)}", _oid(line)) from None
    except UnicodeDecodeError:
        raise MalformedMessage(f"not a message of the transfer protocol, nor UTF-8: {_shown(line)}") from None


def _oid(line: bytes) -> str:
    try:
        return _named.decode(line).oid
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def _shown(line: bytes) -> str:
    text = line[:200].decode("utf-8", "replace").strip()
    return text if len(line) <= 200 else text + "…"

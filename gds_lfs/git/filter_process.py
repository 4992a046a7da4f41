"""The long-running filter protocol of gitattributes(5): messages, and a loop over given streams.

git starts the filter once for all files of a command. Both sides speak in pkt-lines (`pkt_line`);
`.` is a flush:

    git:  git-filter-client  version=2 .            we:  git-filter-server  version=2 .
    git:  capability=clean  capability=... .        we:  those of them that we have .
    git:  command=clean|smudge  pathname=...  can-delay=1  ref=...  treeish=...  blob=... .  content .
    we:   status=success .  content .  .            where the last list may be status=error: forget the content
      or  status=error .                            this file failed
      or  status=delayed .                          only after can-delay=1
    git:  command=list_available_blobs .            once all files were asked for, until none is left
    we:   pathname=...  pathname=... .  status=success .

git asks for a delayed file once more when it was listed as available, then without content. Unknown keys are
ignored, an unknown command is answered with status=error. When git is done it closes its end. An answer
begins after the whole content was read: git writes all of it before it reads anything.
"""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol

from gds_lfs.errors import GitDatasetsError, GitError
from gds_lfs.git.paths import quote
from gds_lfs.git.pkt_line import FLUSH, MAX_PAYLOAD, PacketReader, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CAPABILITIES = (b"clean", b"smudge", b"delay")

_SUCCESS = encode(b"status=success\n") + FLUSH


class Delayed:
    """The type of `DELAYED`."""


DELAYED: Final = Delayed()


class FilterError(GitDatasetsError):
    """One file cannot be filtered; the session goes on."""


class Request(NamedTuple):
    """What git asks for one file. `pathname` is raw, and empty where there is none."""

    command: str
    pathname: bytes = b""
    can_delay: bool = False
    treeish: str | None = None

    @classmethod
    def decode(cls, lines: Sequence[bytes]) -> Request:
        """A request from its list of `key=value` lines; keys it does not know are ignored."""
        values = dict([line.partition(b"=")[::2] for line in lines])
        treeish = values.get(b"treeish")
        return cls(
            os.fsdecode(values.get(b"command", b"")),
            values.get(b"pathname", b""),
            values.get(b"can-delay") == b"1",
            None if treeish is None else os.fsdecode(treeish),
        )


class Handler(Protocol):
    """What the filter does. Each may raise a GitDatasetsError: that file alone fails."""

    def clean(self, request: Request, read: Callable[[int], bytes]) -> bytes | Iterable[bytes]:
        """What git is to store for the content that `read(size)` gives, empty at its end.

        `read` gives at most `size` bytes, and works until this returns. It raises EOFError when git went away
        in the middle: such content is incomplete and must not be stored.
        """

    def smudge(self, request: Request, content: bytes) -> bytes | Iterable[bytes] | Delayed:
        """What git is to put in the work tree; `DELAYED` only where `request.can_delay`."""

    def available(self) -> Iterable[bytes]:
        """Pathnames of delayed files that can be asked for now, or have failed; none when all were given."""

    def answered(self) -> None:
        """Called when an answer has gone out: time for what git need not wait for."""


def serve(stdin: BinaryIO, stdout: BinaryIO, handler: Handler, report: Callable[[str], None] | None = None) -> None:
    """Answer git until it hangs up. `stdin.read(n)` is to give what there is, as an unbuffered file does; `report` gets
    a line for each failed file (default: standard error).

    Raises GitError when the other side does not speak the protocol.
    """
    session = _Session(stdin, stdout, handler, report or _to_stderr)
    try:
        session.greet()
        while True:
            session.answer()
            handler.answered()
    except (EOFError, BrokenPipeError):
        return


class _Session:
    def __init__(self, stdin: BinaryIO, stdout: BinaryIO, handler: Handler, report: Callable[[str], None]) -> None:
        self._packets = PacketReader(stdin.read)
        self._stdout = stdout
        self._handler = handler
        self._report = report

    def greet(self) -> None:
        """Agree on version and capabilities."""
        greeting = self._packets.lines()
        if greeting[:1] != [b"git-filter-client"] or b"version=2" not in greeting:
            raise GitError("standard input does not speak git's filter protocol, version 2; git starts this command")
        self._send([b"git-filter-server", b"version=2"])
        offered = self._packets.lines()
        self._send([b"capability=" + name for name in CAPABILITIES if b"capability=" + name in offered])

    def answer(self) -> None:
        """Read one request and answer it. Raises EOFError when there is none."""
        request = Request.decode(self._packets.lines())
        if request.command == "list_available_blobs":
            self._send([b"pathname=" + path for path in self._handler.available()])
            self._send([b"status=success"])
            return
        # git sends a content with every path; nothing is known about commands that are yet to come
        content = _Content(self._packets, ended=not request.pathname)
        try:
            result = self._result(request, content)
        except GitDatasetsError as error:
            self._refuse(request, error)
            content.drain()
            self._send([b"status=error"])
            return
        content.drain()
        if isinstance(result, Delayed):
            self._send([b"status=delayed"])
        elif isinstance(result, bytes) and 0 < len(result) <= MAX_PAYLOAD:
            self._stdout.write(b"%b%04x%b%b" % (_SUCCESS, len(result) + 4, result, FLUSH + FLUSH))
            self._stdout.flush()
        else:
            self._send_content(request, (result,) if isinstance(result, bytes) else result)

    def _result(self, request: Request, content: _Content) -> bytes | Iterable[bytes] | Delayed:
        if request.command == "clean":
            return self._handler.clean(request, content.read)
        if request.command == "smudge":
            return self._handler.smudge(request, content.read_all())
        raise FilterError(f"git asked for {request.command!r}, which this version does not know")

    def _send_content(self, request: Request, content: Iterable[bytes]) -> None:
        pieces = iter(content)
        try:
            first = next(pieces, b"")  # what fails at once can still be refused as a whole
        except GitDatasetsError as error:
            self._refuse(request, error)
            self._send([b"status=error"])
            return
        self._stdout.write(_SUCCESS)
        end = FLUSH + FLUSH
        try:
            for piece in chain([first], pieces):
                self._send_piece(memoryview(piece))
        except GitDatasetsError as error:
            self._refuse(request, error)
            end = FLUSH + encode(b"status=error\n") + FLUSH
        self._stdout.write(end)
        self._stdout.flush()

    def _send_piece(self, piece: memoryview) -> None:
        """Write packets without copying what is in them; git reads while large output is written."""
        for start in range(0, len(piece), MAX_PAYLOAD):
            payload = piece[start : start + MAX_PAYLOAD]
            self._stdout.write(b"%04x" % (len(payload) + 4))
            self._stdout.write(payload)

    def _refuse(self, request: Request, error: GitDatasetsError) -> None:
        prefix = f"{quote(request.pathname)}: " if request.pathname else ""
        self._report(str(error) if str(error).startswith(prefix) else f"{prefix}{error}")

    def _send(self, lines: Iterable[bytes]) -> None:
        self._stdout.write(b"".join(encode(line + b"\n") for line in lines) + FLUSH)
        self._stdout.flush()


class _Content:
    """The content of one request, from packets up to the flush."""

    def __init__(self, packets: PacketReader, *, ended: bool) -> None:
        self._packets = packets
        self._rest = b""
        self._ended = ended

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; empty only at the end, or for a size of 0."""
        while not self._rest and not self._ended and size:
            self._rest = self._packet()
        if len(self._rest) <= size:
            piece, self._rest = self._rest, b""
        else:
            piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    def read_all(self) -> bytes:
        pieces = [self._rest]
        while not self._ended:
            pieces.append(self._packet())
        self._rest = b""
        return b"".join(pieces)

    def drain(self) -> None:
        """Read to the end what the handler left."""
        self._rest = b""
        while not self._ended:
            self._packet()

    def _packet(self) -> bytes:
        packet = self._packets.packet()
        self._ended = packet is None
        return packet or b""


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"git datasets: {line}\n")

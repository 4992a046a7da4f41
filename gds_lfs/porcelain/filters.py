"""clean and smudge: content in, pointer out, and back.

Clean stores what git hands it, never what is on disk, and answers only when the content is written. Smudge never
fails a checkout because data is absent: the file then holds its pointer, and one summary at the end names it. With
delay, git first hands over all it wants; everything absent is then fetched in one batch.

Contract: gitattributes(5), "Long Running Filter Process".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from gds_lfs.content import pointer as pointers
from gds_lfs.content.chunker import SQLITE_HEADER
from gds_lfs.errors import CorruptObjectError, GitDatasetsError, MissingObjectError
from gds_lfs.git.filter_process import DELAYED, Delayed, FilterError, Request
from gds_lfs.git.paths import quote
from gds_lfs.porcelain import sidecars
from gds_lfs.porcelain.fetching import fetch_objects
from gds_lfs.porcelain.messages import count

if TYPE_CHECKING:
    from gds_lfs.content.hashing import Oid
    from gds_lfs.content.pointer import Pointer
    from gds_lfs.porcelain.workspace import Workspace
    from gds_lfs.store.local import LocalStore
    from gds_lfs.store.writer import StoreWriter

Read = Callable[[int], bytes]

SMALL = 64 * 1024

BUFFERED = 16 * 1024 * 1024
"""Content up to this size is rebuilt whole and checked before git sees a byte; larger content is checked in a pass
of its own first, so that memory stays flat."""


class Filter:
    """One filter session: what git asks of one process, from its first file to `finish`."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._writer: StoreWriter | None = None
        self._delayed: dict[bytes, Pointer] = {}
        self._available: dict[bytes, Pointer] = {}
        self._treeish: str | None = None
        self._smudged = False
        self._unreachable: str | None = None
        self._asked: set[Oid] = set()
        self._absent: dict[bytes, Oid] = {}
        self._raw: list[bytes] = []
        self._malformed: list[bytes] = []

    @property
    def store(self) -> LocalStore:
        return self.workspace.store

    def clean(self, request: Request, read: Read) -> bytes:
        """The pointer of the content that `read` yields, once it is stored. A pointer passes through unchanged."""
        data = read_up_to(read, SMALL)
        if not data:
            return b""
        if len(data) <= pointers.MAX_SIZE:
            known = pointers.recognise(data)
            if known is not None:
                return known.encode()
            if pointers.has_conflict(data):
                raise FilterError(conflict_message(request.pathname))
            if is_malformed(data):
                self._malformed.append(request.pathname)
                return data
        elif sidecars.has_unsaved_rows(self.workspace.repo, request.pathname, data):
            self.workspace.messages.warn(
                f"{quote(request.pathname)}: rows are still in its -wal file; a commit folds them in, "
                f"or close the program that has it open"
            )
        if self._writer is None:
            self._writer = self.store.writer(framed=False)
        if len(data) < SMALL:  # most files: no need to stream them
            return self._writer.add_bytes(data).encode()
        return self._writer.add(rejoin(data, read)).encode()

    def smudge(self, request: Request, text: bytes) -> bytes | Iterable[bytes] | Delayed:
        """The content behind the pointer `text`; the pointer itself where the data cannot be had now."""
        self._smudged = True
        self._treeish = request.treeish or self._treeish
        # What was delayed is asked for again with an empty content.
        pointer = pointers.recognise(text) if text else self._available.pop(request.pathname, None)
        if pointer is None:
            if text:
                (self._malformed if text.startswith(pointers.PREFIX) else self._raw).append(request.pathname)
            return text
        if pointer.size == 0 or self.workspace.settings.skip_smudge:
            return pointer.encode() if pointer.size else b""
        # After one that is absent the others are taken to be so too: what is here comes as well a moment later.
        if request.can_delay and (self._delayed or not self.store.has(pointer.oid)):
            if not self._delayed:
                self._prepare_remote()  # while git hands over the others
            self._delayed[request.pathname] = pointer
            return DELAYED
        return self._content(request.pathname, pointer)

    def available(self) -> list[bytes]:
        """Fetch all that was delayed, in one batch, and name it; nothing the second time."""
        wanted, self._delayed = self._delayed, {}
        self._fetch({pointer: quote(path) for path, pointer in wanted.items()})
        self._available |= wanted
        return list(wanted)

    def answered(self) -> None:
        """While git puts the last answer to use: bring the pack's hash up to date."""
        if self._writer is not None:
            self._writer.digest()

    def finish(self) -> None:
        """Seal what was stored and say once what is absent, raw or malformed."""
        if self._writer is not None:
            self._writer.seal()
        messages = self.workspace.messages
        if self._absent:
            reason = self._unreachable or "the dataset remote does not have them whole"
            form = "a pointer" if len(self._absent) == 1 else "pointers"
            messages.warn_paths(
                f"checked out {count(len(self._absent), 'file')} as {form}; the data could not be had ({reason}):",
                map(quote, self._absent),
                "`git datasets pull` fills them in.",
            )
        if self._raw and self._smudged:
            messages.warn_paths(
                "these files should have been pointers, but their content is in git itself:",
                map(quote, self._raw),
                "`git add --renormalize .` and a commit turn them into pointers.",
            )
        if self._malformed:
            warn_of_malformed(self.workspace, self._malformed)
        if self.workspace.repo.top is not None:
            # A clone brings no hooks along: whoever checks data out, or adds some, will need them.
            from gds_lfs.porcelain.install import install_hooks_quietly

            install_hooks_quietly(self.workspace)

    def _content(self, path: bytes, pointer: Pointer) -> bytes | Iterable[bytes]:
        try:
            data = self._checked(pointer)
        except (MissingObjectError, CorruptObjectError):
            # The store has set a corrupt copy aside by now: a second look finds the remote's.
            self._fetch({pointer: quote(path)})
            try:
                data = self._checked(pointer)
            except MissingObjectError:
                return self._keep_pointer(path, pointer)
            except CorruptObjectError as error:
                self.workspace.messages.warn(f"{quote(path)}: {error}")
                return self._keep_pointer(path, pointer)
        if not isinstance(data, bytes) or data.startswith(SQLITE_HEADER):
            sidecars.set_aside(self.workspace, path)
        return data

    def _keep_pointer(self, path: bytes, pointer: Pointer) -> bytes:
        self._absent[path] = pointer.oid
        return pointer.encode()

    def _checked(self, pointer: Pointer) -> bytes | Iterable[bytes]:
        if pointer.size <= BUFFERED:
            return self.store.read(pointer.oid)
        for _ in self.store.pieces(pointer.oid):  # read to the end: unlike `verify` this sets a corrupt copy aside
            pass
        return self.store.pieces(pointer.oid)

    def _fetch(self, absent: dict[Pointer, str]) -> None:
        """Bring what can be had; what cannot stays absent and is told in the summary."""
        wanted = {pointer.oid: path for pointer, path in absent.items() if pointer.oid not in self._asked}
        if not wanted or self._unreachable:
            return
        self._asked.update(wanted)
        try:
            sizes = {pointer.oid: pointer.size for pointer in absent}
            fetch_objects(self.workspace, wanted, sizes=sizes, source=self._config_source)
        except GitDatasetsError as error:
            self._unreachable = str(error).rstrip(".")

    def _prepare_remote(self) -> None:
        with contextlib.suppress(GitDatasetsError):
            self.workspace.open_remote(source=self._config_source).prepare()

    @cached_property
    def _config_source(self) -> str | None:
        """A clone's .datasetsconfig may not be on disk yet: the tree being checked out has it."""
        for source in (self._treeish, None, ":"):
            if self.workspace.remote_url(source=source) is not None:
                return source
        return None


def conflict_message(path: bytes) -> str:
    """Why a file with conflict markers around pointers is not stored."""
    return (
        f"{quote(path)}: holds conflict markers around pointers, not data; choose a side with "
        f"`git checkout --ours` or `--theirs`, then add it"
    )


def clean_one(workspace: Workspace, path: bytes, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """`filter.datasets.clean`: one file, for a git that does not use the long-running process."""
    session = Filter(workspace)
    try:
        result = session.clean(Request("clean", path), stdin.read)
    except FilterError as error:
        raise GitDatasetsError(str(error)) from error
    session.finish()
    stdout.write(result)
    stdout.flush()


def smudge_one(workspace: Workspace, path: bytes, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """`filter.datasets.smudge`: one file, for a git that does not use the long-running process."""
    session = Filter(workspace)
    result = session.smudge(Request("smudge", path), stdin.read())
    assert not isinstance(result, Delayed)  # nothing can be delayed without the process
    stdout.writelines([result] if isinstance(result, bytes) else result)
    stdout.flush()
    session.finish()


def is_malformed(text: bytes) -> bool:
    """Whether a text begins as a pointer does and is as short, but is none. It is nobody's data."""
    return len(text) <= pointers.MAX_SIZE and text.startswith(pointers.PREFIX) and pointers.recognise(text) is None


def warn_of_malformed(workspace: Workspace, paths: Iterable[bytes]) -> None:
    """Say that such files stay as they are, and what to do."""
    workspace.messages.warn_paths(
        "these files look like pointers, but are none; they were left as they are:",
        map(quote, paths),
        "Check out a good version (`git checkout REV -- FILE`), or add the real file again.",
    )


def read_up_to(read: Read, size: int) -> bytes:
    """The first `size` bytes of a stream, or all of a shorter one."""
    data = read(size)
    if 0 < len(data) < size:
        pieces = [data]
        size -= len(data)
        while size and (piece := read(size)):
            pieces.append(piece)
            size -= len(piece)
        data = b"".join(pieces) if len(pieces) > 1 else data
    return data


def rejoin(head: bytes, read: Read) -> Read:
    """A stream that begins with what was read ahead of it."""
    rest = memoryview(head)

    def joined(size: int) -> bytes:
        nonlocal rest
        if rest:
            piece, rest = rest[:size], rest[size:]
            return bytes(piece)
        return read(size)

    return joined

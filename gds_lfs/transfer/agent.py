"""A custom transfer agent for git-lfs, apart from what carries its messages and what moves its data.

git-lfs starts one agent process or, with `concurrent`, several; each carries one conversation in which git-lfs asks for
one object and waits for its `complete` (messages: lfs_messages.py). Here all conversations of one git-lfs meet in one
`Agent` (rendezvous.py brings them together), which answers so that objects travel in packs all the same:

Uploads. After `terminate` git-lfs listens no more and looks at no exit code; it then lets git move the refs. So an
object is vouched for by a `complete` alone. The first object of a batch is *held*: its `complete` waits until all that
was gathered with it is on the remote. As long as one is held, others are answered before their content is read, which
is left to moments in which nobody waits: should reading or sending fail, the held one fails, and with it the push. A
conversation that is alone has nobody to hold for it, so each of its objects is sent before it is answered.

A batch ends when git-lfs has asked for as many objects as it hands out at a time, when enough bytes are gathered,
or when nothing more comes for a moment.

Downloads. What is asked for at about the same time is fetched together, with whatever shares its frames; what came
that way is answered at once later.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

from gds_lfs.content.hashing import from_hex
from gds_lfs.errors import GitDatasetsError
from gds_lfs.transfer.conversation import Conversation, Shares, State
from gds_lfs.transfer.lfs_messages import Fault, Init, MalformedMessage, Terminate, Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gds_lfs.content.hashing import Oid
    from gds_lfs.transfer.queue import Progress

__all__ = ["Agent", "Downloads", "Engine", "Uploads"]

#: git-lfs hands out so many objects at a time, if it is not told otherwise or does not listen (before 3.6).
BATCH = 100
#: Bytes that are gathered before they are sent, whatever else may come.
ENOUGH = 64 << 20
#: The code of an error that has no exit code of ours.
UNEXPECTED = 1


class Uploads(Protocol):
    """Where contents are gathered and sent together."""

    @property
    def size(self) -> int:
        """Bytes gathered and not yet on the remote."""

    def add(self, oid: Oid, size: int, path: str, advance: Callable[[int], None]) -> bool:
        """Gather a file's content; False if the remote has it already. `advance` hears how many bytes are read.

        Reading a small file may be left to `work`. Raises GitDatasetsError, OSError.
        """

    def work(self) -> bool:
        """Read a file that was left; False if there is none. What goes wrong is told by every `flush` from then on: the
        one who asked for it may have been answered.
        """

    def flush(self) -> None:
        """Put all that is gathered on the remote. Raises GitDatasetsError; what was gathered is then given up, unless
        the reason is a file that could not be read.
        """


class Downloads(Protocol):
    """Where contents come from."""

    def at_hand(self, oid: Oid) -> bool:
        """Whether the content can be had without asking the remote."""

    def fetch(self, wanted: Sequence[Oid], progress: Progress) -> Mapping[Oid, Path | GitDatasetsError]:
        """Each content in a file of its own, for the caller to take away, or why it cannot be had. `progress` hears how
        far all of it together is.
        """


class Engine(Protocol):
    """What moves data. What opens may raise GitDatasetsError, now or at its first use."""

    @property
    def batch(self) -> int:
        """How many objects git-lfs was told to hand out at a time: it waits for all of them before the next."""

    def uploads(self, remote: str) -> Uploads:
        """For what belongs to a git remote (a name or a URL)."""

    def downloads(self, remote: str) -> Downloads:
        """From there."""

    def report(self, error: BaseException) -> str:
        """Write down an error that nobody foresaw; what to tell the user of it."""


class Agent:
    """All conversations of one git-lfs process, and the answers they get."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch = BATCH
        self._conversations: set[Conversation] = set()
        self._uploads: Uploads | None = None
        self._downloads: Downloads | None = None
        self._held: Conversation | None = None
        self._asked = 0
        self._wanted: list[tuple[Conversation, Oid]] = []
        #: Whether a conversation ended without `terminate`: git-lfs was interrupted, and may be started again.
        self.interrupted = False

    def join(self, send: Callable[[bytes], None], *, greeted: bool = False) -> Conversation:
        """A conversation more; `send` carries its answers, `greeted` tells that its `init` has its answer."""
        conversation = Conversation(send, greeted)
        self._conversations.add(conversation)
        return conversation

    def leave(self, conversation: Conversation) -> None:
        """A conversation has ended: `terminate`, or its stream is closed."""
        self._conversations.discard(conversation)
        self.interrupted |= conversation.state is not State.OVER
        self._wanted = [(who, oid) for who, oid in self._wanted if who is not conversation]
        if self._held is conversation:
            self._held = None  # whoever asked knows that it was not answered

    @property
    def waits(self) -> bool:
        """Whether answers are outstanding that `pause` will give."""
        return self._held is not None or bool(self._wanted)

    def work(self) -> bool:
        """Do some of what was put off for a moment in which nobody waits; False if there is nothing to do."""
        return self._uploads is not None and self._uploads.work()

    def pause(self) -> None:
        """Nothing more has come for a moment."""
        if self._held is not None and self._asked % BATCH == 0:
            self._batch = BATCH  # a batch has ended sooner than git-lfs was told
        self._send_held()
        self._fetch_wanted()

    def receive(self, conversation: Conversation, line: bytes) -> None:
        """One line of a conversation; every request is answered, now or by a later `receive` or `pause`."""
        try:
            message = conversation.receive(line)
        except MalformedMessage as error:
            fault = Fault(UNEXPECTED, str(error))
            if conversation.state is State.NEW and not error.oid:
                conversation.refuse(fault)
            else:
                conversation.fail(fault, error.oid)
            return
        if isinstance(message, Init):
            self._begin(conversation, message)
        elif isinstance(message, Terminate):
            self.leave(conversation)
        else:
            try:
                oid = from_hex(message.oid)
            except ValueError as error:
                conversation.fail(Fault(UNEXPECTED, f"{message.oid!r} is no object id: {error}"))
                return
            if isinstance(message, Upload):
                self._upload(conversation, oid, message)
            else:
                self._download(conversation, oid)

    def _begin(self, conversation: Conversation, message: Init) -> None:
        if message.operation not in ("upload", "download"):
            conversation.refuse(Fault(UNEXPECTED, f"there is no operation {message.operation!r}"))
            return
        conversation.ready()
        with contextlib.suppress(Exception):  # what is wrong is told to the first request
            self._open(conversation)  # while git-lfs starts its other agents

    def _open(self, conversation: Conversation) -> None:
        if conversation.operation == "upload":
            self._opened_uploads(conversation.remote)
        else:
            self._downloads = self._downloads or self._engine.downloads(conversation.remote)

    def _opened_uploads(self, remote: str) -> Uploads:
        if self._uploads is None:
            self._uploads = self._engine.uploads(remote)
            self._batch = max(self._engine.batch, 1)
        return self._uploads

    def _upload(self, conversation: Conversation, oid: Oid, message: Upload) -> None:
        try:
            uploads = self._opened_uploads(conversation.remote)
            fresh = uploads.add(oid, message.size, message.path, conversation.advance)
        except Exception as error:
            conversation.fail(self._fault(error))
        else:
            if fresh and self._held is None:
                self._held = conversation
                conversation.advance(message.size)  # git-lfs lets its other workers go at the first sign of life
            else:
                conversation.complete()
        self._asked += 1
        alone = len(self._conversations) == 1
        if alone or self._asked % self._batch == 0 or (self._uploads and self._uploads.size >= ENOUGH):
            self._send_held()

    def _send_held(self) -> None:
        """Put what is gathered on the remote, then answer the one that vouches for it."""
        held, self._held = self._held, None
        if held is None:
            return
        assert self._uploads is not None
        try:
            self._uploads.flush()
        except Exception as error:
            held.fail(self._fault(error))
        else:
            held.complete()

    def _download(self, conversation: Conversation, oid: Oid) -> None:
        self._wanted.append((conversation, oid))
        try:
            if self._downloads is None:
                self._downloads = self._engine.downloads(conversation.remote)
            at_hand = self._downloads.at_hand(oid)
        except Exception as error:
            self._wanted.pop()
            conversation.fail(self._fault(error))
            return
        if at_hand or len(self._wanted) == len(self._conversations):
            self._fetch_wanted()

    def _fetch_wanted(self) -> None:
        wanted, self._wanted = self._wanted, []
        if not wanted:
            return
        assert self._downloads is not None
        try:
            shares = Shares([conversation for conversation, _ in wanted])
            found = self._downloads.fetch([oid for _, oid in wanted], shares)
        except Exception as error:
            fault = self._fault(error)
            for conversation, _ in wanted:
                conversation.fail(fault)
            return
        for conversation, oid in wanted:
            outcome = found[oid]
            if isinstance(outcome, GitDatasetsError):
                conversation.fail(self._fault(outcome))
            else:
                conversation.complete(str(outcome))

    def _fault(self, error: Exception) -> Fault:
        if isinstance(error, GitDatasetsError):
            return Fault(error.exit_code, str(error))
        if isinstance(error, OSError) and error.filename:
            return Fault(UNEXPECTED, f"{error.filename}: {error.strerror}")
        return Fault(UNEXPECTED, self._engine.report(error))

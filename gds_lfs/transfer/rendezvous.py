"""How the agent processes of one git-lfs become one.

git-lfs starts several agents that know nothing of each other. The first one opens a socket under a name that only
children of the same git-lfs work out; each later one hands its two pipes over through it (SCM_RIGHTS) and then sleeps
until the first one, or the end of the first one, releases it. So all conversations are held by one process, which can
gather what all of them bring.

Two agents that take each other for children of different git-lfs processes only work apart, and slower. The other
mistake would answer for one push with what another one fails to send, hence a name that is hard to share: the process
id and start time of that git-lfs, its folder, the user, what git-lfs said first. Where any of it cannot be had (no
Unix sockets, a folder that others can write to, another program in between) every agent works alone.

Only the standard library is needed here: the later agents load nothing else.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from contextlib import suppress
from zlib import crc32

__all__ = ["Meeting", "hand_over", "meet", "release"]

_PATIENCE = 5.0
_ABANDONED = 24 * 3600
_GREETING = b"2 pipes"
#: git-lfs starts an agent through a shell, which may or may not stay.
_SHELLS = ("sh", "dash", "bash", "ash", "zsh", "busybox")
_GENERATIONS = 2


class Meeting:
    """The open socket of the first agent, and the agents that have joined it."""

    def __init__(self, listener: socket.socket, path: str) -> None:
        self._listener = listener
        self._path = path

    def fileno(self) -> int:
        """For select."""
        return self._listener.fileno()

    def accept(self) -> tuple[tuple[int, int], socket.socket] | None:
        """The stdin and stdout of an agent that has come, and what to close when its conversation is over."""
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return None
        connection.settimeout(_PATIENCE)
        pipes: list[int] = []
        try:
            greeting, pipes, _, _ = socket.recv_fds(connection, len(_GREETING), 2)
            if greeting == _GREETING and len(pipes) == 2:
                connection.sendall(b"+")
                return (pipes[0], pipes[1]), connection
        except OSError:
            pass
        for pipe in pipes:
            os.close(pipe)
        connection.close()
        return None

    def close(self) -> None:
        """No more agents can come."""
        with suppress(OSError):
            os.unlink(self._path)
        self._listener.close()


def meet(init: bytes) -> Meeting | socket.socket | None:
    """The meeting of this process's siblings, all of whom git-lfs sent the same `init`: a Meeting for whoever comes
    first, a connection to it for others; None where there can be none.
    """
    path = _place(init)
    if path is None:
        return None
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    for _ in range(3):
        try:
            listener.bind(path)
            listener.listen(64)
        except OSError:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(_PATIENCE)
            try:
                connection.connect(path)
            except ConnectionRefusedError:  # left behind by one that was killed
                connection.close()
                with suppress(OSError):
                    os.unlink(path)
                continue
            except OSError:
                connection.close()
                break
            listener.close()
            return connection
        _sweep(os.path.dirname(path))
        return Meeting(listener, path)
    listener.close()
    return None


def hand_over(connection: socket.socket, stdin: int, stdout: int) -> bool:
    """Give this process's pipes to the first agent and wait until it is done with them. False if it did not take them.

    Raises ConnectionError when the first agent ended without releasing this one.
    """
    try:
        socket.send_fds(connection, [_GREETING], [stdin, stdout])
        if connection.recv(1) != b"+":
            return False
    except OSError:
        return False
    connection.settimeout(None)
    if connection.recv(1) != b".":
        raise ConnectionError("the agent that this one works with has ended")
    return True


def release(connection: socket.socket) -> None:
    """Let a joined agent go."""
    with suppress(OSError):
        connection.sendall(b".")
    connection.close()


def _place(init: bytes) -> str | None:
    """Where children of the same git-lfs meet."""
    if not hasattr(socket, "send_fds") or not hasattr(os, "getuid"):
        return None
    try:
        parent = _git_lfs()
        here = os.stat(os.curdir)
        folder = _private_folder()
    except OSError:
        return None
    return None if parent is None else f"{folder}/{parent}.{here.st_dev}.{here.st_ino}.{crc32(init):x}"


def _private_folder() -> str:
    """A folder that nobody else can write to, under a name short enough for a socket. Raises OSError."""
    user = os.getuid()
    home = f"/run/user/{user}"
    folder = f"{home if os.path.isdir(home) else '/tmp'}/git-datasets-{user}"
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise PermissionError(folder)
    return folder


def _sweep(folder: str) -> None:
    """Remove the sockets of agents that were killed. A git-lfs starts all of its agents in its first seconds."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < time.time() - _ABANDONED:
                    os.unlink(entry.path)


def _git_lfs() -> str | None:
    """The git-lfs process that this one works for: its parent, or the parent of the shell between them."""
    pid = os.getppid()
    for _ in range(_GENERATIONS):
        name, parent, started = _process(pid)
        if name.startswith("git-lfs"):
            return f"{pid}.{started}"
        if name not in _SHELLS or parent <= 1:
            return None
        pid = parent
    return None


def _process(pid: int) -> tuple[str, int, str]:
    """A process's name, its parent, and when it began (process ids are used again). Raises OSError."""
    if sys.platform == "linux":
        with open(f"/proc/{pid}/stat", "rb") as file:
            before, _, after = file.read().rpartition(b")")
        fields = after.split()
        return os.fsdecode(before.partition(b"(")[2]), int(fields[1]), fields[19].decode()
    import subprocess

    command = ["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)]
    told = subprocess.run(command, capture_output=True, check=False).stdout.split(None, 6)
    if len(told) < 7:
        raise ProcessLookupError(pid)
    parent, *started, name = map(os.fsdecode, told)
    return os.path.basename(name.strip()).lstrip("-"), int(parent), "".join(started).replace(":", "")

"""Every error a user can cause, and the exit code each class ends with.

::

    GitDatasetsError            1   anything that has no code of its own
    ├── NotARepositoryError     3   no repository, or no work tree where one is needed
    ├── GitError                3   git itself refused
    ├── ConfigError             4   a setting, .datasetsconfig or a hook path that cannot be used
    ├── DatasetError            5   index.py: a declaration, an ingest or a transform failed
    ├── MissingObjectError      6   content that is neither here nor on the remote
    ├── CorruptObjectError      7   content whose hash is wrong
    ├── RemoteError             8   the dataset remote cannot be used
    │   └── TransientRemoteError    the same request may go through later
    ├── LockedError             9   someone else holds a lock
    └── StoreWriteError        10   the local store cannot be written (a full disk)

Exit code 0 is success and 2 is a usage error, as in most commands. Messages are one or two lines: what is
wrong, naming the path, field or key, and the way out. They never carry a traceback.
"""

from __future__ import annotations


class GitDatasetsError(Exception):
    """Base of all errors that end a command with a message instead of a traceback."""

    exit_code = 1


class NotARepositoryError(GitDatasetsError):
    exit_code = 3


class GitError(GitDatasetsError):
    exit_code = 3


class ConfigError(GitDatasetsError):
    exit_code = 4


class DatasetError(GitDatasetsError):
    exit_code = 5


class MissingObjectError(GitDatasetsError):
    """Content that is not there. `oid` is its SHA-256 (32 bytes)."""

    exit_code = 6

    def __init__(self, message: str, oid: bytes = b"") -> None:
        super().__init__(message)
        self.oid = oid


class CorruptObjectError(GitDatasetsError):
    """Content whose bytes do not have the hash they are stored under. `oid` is that hash."""

    exit_code = 7

    def __init__(self, message: str, oid: bytes = b"") -> None:
        super().__init__(message)
        self.oid = oid


class RemoteError(GitDatasetsError):
    exit_code = 8


class TransientRemoteError(RemoteError):
    """A remote's failure that may pass: the transfer queue tries again."""


class LockedError(GitDatasetsError):
    exit_code = 9


class StoreWriteError(GitDatasetsError):
    exit_code = 10

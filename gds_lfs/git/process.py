"""git running beside us, fed through a pipe or from a file."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from gds_lfs.git.command import failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gds_lfs.git.repo import Repo

_BUFFER = 1 << 16


@contextmanager
def running(
    repo: Repo,
    args: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """`git <args>` with these streams, as for Popen: killed when the block raises, else waited for after it.

    Raises GitError when git fails.
    """
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            ["git", *args],
            bufsize=_BUFFER,
            cwd=repo.folder,
            env=repo.environment(env),
            stdin=stdin,
            stdout=stdout,
            stderr=complaints,
        )
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            code = process.wait()
        if code != 0:
            complaints.seek(0)
            raise failure(args, code, complaints.read())

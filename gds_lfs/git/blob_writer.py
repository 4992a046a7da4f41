"""Blobs written many at a time: one pack stream, made by dulwich, which git itself checks and stores.

git unpacks a few blobs to loose objects and keeps many as a pack; permissions and both object formats are its
business.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gds_lfs.git import objects
from gds_lfs.git.process import running

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gds_lfs.git.repo import Repo

# from so many on git keeps a pack: what transfer.unpackLimit is by default
_PACK_FROM = 100


def write_blobs(repo: Repo, blobs: Iterable[bytes]) -> list[bytes]:
    """Store the blobs; their ids in hex, in order. Nothing is written for those that are there. Raises GitError."""
    with writing_blobs(repo, blobs) as shas:
        return shas


@contextmanager
def writing_blobs(repo: Repo, blobs: Iterable[bytes]) -> Iterator[list[bytes]]:
    """`write_blobs` for who has something to do meanwhile: git has stored them when the block ends, or it raises."""
    from dulwich.object_format import get_object_format
    from dulwich.objects import Blob
    from dulwich.pack import PackChunkGenerator, UnpackedObject, obj_sha

    kind = get_object_format(repo.object_format)
    contents = list(blobs)
    shas = [obj_sha(Blob.type_num, data, kind.hash_func).hex().encode() for data in contents]
    fresh = dict(zip(shas, contents, strict=True))
    for sha in objects.present(repo, fresh):
        del fresh[sha]
    if not fresh:
        yield shas
        return
    records = (
        UnpackedObject(Blob.type_num, decomp_chunks=[data], sha=bytes.fromhex(sha.decode()))
        for sha, data in fresh.items()
    )
    store = ("unpack-objects", "-q") if len(fresh) < _PACK_FROM else ("index-pack", "--stdin")
    with _fed(repo, store, PackChunkGenerator(kind, num_records=len(fresh), records=records)):
        yield shas


@contextmanager
def _fed(repo: Repo, args: Sequence[str], data: Iterable[bytes]) -> Iterator[None]:
    """`git <args>`, given `data` before the block, and waited for after it. Raises GitError when git fails."""
    with running(repo, args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # git's exit code and its words tell why
            for piece in data:
                process.stdin.write(piece)
        yield

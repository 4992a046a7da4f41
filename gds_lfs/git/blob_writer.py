"""Blobs written many at a time: one pack stream, made by dulwich, which git itself checks and stores.

git unpacks a few blobs to loose objects and keeps many as a pack; permissions and both object formats are its
business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.git import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gds_lfs.git.repo import Repo

# from so many on git keeps a pack: what transfer.unpackLimit is by default
_PACK_FROM = 100


def write_blobs(repo: Repo, blobs: Iterable[bytes]) -> list[bytes]:
    """Store the blobs; their ids in hex, in order. Nothing is written for those that are there. Raises GitError."""
    from dulwich.object_format import get_object_format
    from dulwich.objects import Blob
    from dulwich.pack import PackChunkGenerator, UnpackedObject, obj_sha

    kind = get_object_format(repo.object_format)
    contents = list(blobs)
    shas = [obj_sha(Blob.type_num, data, kind.hash_func).hex().encode() for data in contents]
    fresh = dict(zip(shas, contents, strict=True))
    for sha in objects.present(repo, fresh):
        del fresh[sha]
    if fresh:
        records = (
            UnpackedObject(Blob.type_num, decomp_chunks=[data], sha=bytes.fromhex(sha.decode()))
            for sha, data in fresh.items()
        )
        pack = b"".join(PackChunkGenerator(kind, num_records=len(fresh), records=records))
        store = ("unpack-objects", "-q") if len(fresh) < _PACK_FROM else ("index-pack", "--stdin")
        repo.run(*store, input=pack)
    return shas

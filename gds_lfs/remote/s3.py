"""A remote that is a prefix of an S3 bucket, on AWS or on any server that speaks S3.

Objects appear whole: a PUT, or a multipart upload once it is completed. They are created with `If-None-Match: *`,
which saves sending what is there; nothing depends on it, since whoever writes a key writes the same bytes, and
servers that do not know the header, or ignore it, serve as well. The bucket must exist.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import Entry, NoSuchKeyError, ShortBodyError
from gds_lfs.remote.draft import Spooled
from gds_lfs.remote.s3_client import Connection
from gds_lfs.remote.s3_multipart import THRESHOLD, Multipart

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from gds_lfs.remote.base import Source
    from gds_lfs.remote.s3_options import Bucket, S3Options

__all__ = ["S3Remote"]

PARALLEL = 8
# Open files that are left to the rest of the program; a transfer under way needs a socket and a pack.
_OTHER_FILES = 40
_FILES_PER_REQUEST = 3


class S3Remote:
    """Objects below a prefix."""

    def __init__(self, bucket: Bucket, options: S3Options) -> None:
        self.parallel = _affordable(PARALLEL)
        self._connection = Connection(bucket, options, self.parallel)
        self._prefix = bucket.prefix
        self._multipart = Multipart(self._connection, self._new_object_options(options))
        self._new_object = self._new_object_options(options)
        self._conditional = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The bucket's URL, with the server's address where it is not AWS's."""
        return self._connection.place

    @property
    def traffic(self) -> Counter[str]:
        """Requests sent so far, by the name of S3's operation."""
        return self._connection.requests

    def prepare(self) -> None:
        """Import boto3 and look for credentials in a thread, while git is still being asked what to move."""
        threading.Thread(target=self._connection.warm_up, name="connect", daemon=True).start()

    def create(self) -> None:
        """Nothing to do: a prefix needs no making, and a bucket is its owner's to make."""

    def put(self, key: str, source: Source) -> None:
        """One PUT, or a multipart upload of a large object."""
        size = len(source) if isinstance(source, bytes) else source.seek(0, os.SEEK_END)
        if size > THRESHOLD:
            if self.size(key) != size:
                self._multipart.put(self._prefix + key, source, size, f"write {key}")
            return
        if self._conditional and self._created(key, source):
            return
        if self.size(key) != size:
            self._put(key, source)

    def draft(self, scratch: Path) -> Spooled:
        """Kept in `scratch`: a request wants to know its length."""
        return Spooled(self, scratch)

    def get(self, key: str) -> bytes:
        """The object's bytes."""
        return self._get(key, f"read {key}")[0]

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of the object's bytes."""
        if not length:
            return b""
        doing = f"read {key}, bytes {offset} to {offset + length - 1}"
        data, answer = self._get(key, doing, Range=f"bytes={offset}-{offset + length - 1}")
        if "ContentRange" not in answer and (offset or len(data) != length):
            raise RemoteError(f"{self.url}: the server ignores that only a part of {key} was asked for.")
        if len(data) < length:
            raise ShortBodyError(
                f"{self.url}: {key} is cut short: it ends at {offset + len(data)}, not at {offset + length}."
            )
        return data

    def list(self, prefix: str) -> Iterator[Entry]:
        """Page by page, a thousand keys each."""
        doing = f"list {prefix or 'all objects'}"
        more: dict[str, object] = {}
        while True:
            page = self._connection.call("list_objects_v2", doing, Prefix=self._prefix + prefix, **more)
            for entry in page.get("Contents", ()):
                yield Entry(entry["Key"].removeprefix(self._prefix), entry["Size"])
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def size(self, key: str) -> int | None:
        """A HEAD's Content-Length."""
        try:
            answer = self._connection.call("head_object", f"look at {key}", Key=self._prefix + key)
        except NoSuchKeyError:
            return None
        return int(answer["ContentLength"])

    def delete(self, key: str) -> None:
        """One DELETE, which an absent key satisfies too."""
        try:
            self._connection.call("delete_object", f"delete {key}", Key=self._prefix + key)
        except NoSuchKeyError:
            return

    def _get(self, key: str, doing: str, **parameters: object) -> tuple[bytes, dict[str, Any]]:
        answer = self._connection.call("get_object", doing, Key=self._prefix + key, **parameters)
        data = self._connection.read(answer, doing)
        expected = answer.get("ContentLength")
        if expected is not None and len(data) != expected:
            raise TransientRemoteError(f"{self.url}: the connection broke while trying to {doing}.")
        return data, answer

    def _put(self, key: str, source: Source, **parameters: object) -> None:
        self._connection.call(
            "put_object", f"write {key}", Key=self._prefix + key, Body=source, **self._new_object, **parameters
        )

    def _created(self, key: str, source: Source) -> bool:
        """Try to create the object; False if something is there already, or the server cannot tell."""
        from gds_lfs.remote.s3_errors import code_of

        try:
            self._put(key, source, IfNoneMatch="*")
        except RemoteError as error:
            code = code_of(error.__cause__)
            if code in ("NotImplemented", "InvalidArgument"):
                self._conditional = False
            elif code not in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
                raise
            return False
        return True

    @staticmethod
    def _new_object_options(options: S3Options) -> dict[str, str]:
        chosen = {
            "StorageClass": options.storage_class,
            "ServerSideEncryption": options.encryption or ("aws:kms" if options.kms_key else None),
            "SSEKMSKeyId": options.kms_key,
        }
        return {name: value for name, value in chosen.items() if value}


def _affordable(wanted: int) -> int:
    """As many requests at once as the limit of open files leaves room for."""
    try:
        import resource
    except ImportError:  # Windows, where the limit is in the thousands
        return wanted
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, (limit - _OTHER_FILES) // _FILES_PER_REQUEST))

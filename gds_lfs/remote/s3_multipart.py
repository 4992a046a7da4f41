"""Multipart uploads, for objects that are too large for one request.

Parts are sent one after the other, each signed when it is sent, so that neither a slow line nor an expiring token
outlives a signature. An upload that fails is aborted. One that was killed leaves parts that no listing shows but
that cost storage: those under our prefix that are two days old are aborted by the next multipart upload. (A
lifecycle rule of the bucket, AbortIncompleteMultipartUpload, does the same.)
"""

from __future__ import annotations

import contextlib
import io
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from gds_lfs.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gds_lfs.remote.base import Source
    from gds_lfs.remote.s3_client import Connection

__all__ = ["LEFTOVER_AGE", "THRESHOLD", "Multipart", "part_size"]

MIB = 1 << 20
#: Objects up to this size are sent in one request: no pack is larger.
THRESHOLD = 64 * MIB
PART_SIZE = 16 * MIB
MAX_PARTS = 10_000
#: Uploads that were begun longer ago than this were left by a process that died.
LEFTOVER_AGE = timedelta(days=2)


def part_size(size: int) -> int:
    """Bytes of a part, so that an object of `size` bytes has no more parts than S3 allows."""
    least = -(-size // MAX_PARTS)
    return max(PART_SIZE, -(-least // MIB) * MIB)


class Multipart:
    """Multipart uploads to one bucket; `options` go with every new object."""

    def __init__(self, connection: Connection, options: Mapping[str, str]) -> None:
        self._connection = connection
        self._options = options
        self._swept = False

    def put(self, key: str, source: Source, size: int, doing: str) -> None:
        """Store an object of `size` bytes; nothing of it stays where that fails."""
        self._sweep()
        begun = self._connection.call("create_multipart_upload", doing, Key=key, **self._options)
        upload = {"Key": key, "UploadId": begun["UploadId"]}
        try:
            parts = self._send_parts(upload, source, part_size(size), doing)
            self._connection.call("complete_multipart_upload", doing, **upload, MultipartUpload={"Parts": parts})
        except BaseException:
            with contextlib.suppress(RemoteError):
                self._connection.call("abort_multipart_upload", doing, **upload)
            raise

    def abort_leftovers(self, age: timedelta = LEFTOVER_AGE) -> int:
        """Abort the uploads under our prefix that were begun longer ago than `age`; returns how many there were."""
        doing = "abort what killed uploads left"
        oldest = datetime.now(timezone.utc) - age
        aborted = 0
        more: dict[str, object] = {}
        while True:
            page = self._connection.call("list_multipart_uploads", doing, Prefix=self._connection.bucket.prefix, **more)
            for upload in page.get("Uploads", ()):
                if upload["Initiated"] <= oldest:
                    self._connection.call(
                        "abort_multipart_upload", doing, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
                    aborted += 1
            if not page.get("IsTruncated"):
                return aborted
            more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def _send_parts(self, upload: Mapping[str, str], source: Source, size: int, doing: str) -> list[dict[str, Any]]:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        file.seek(0)
        parts: list[dict[str, Any]] = []
        while data := file.read(size):
            number = len(parts) + 1
            answer = self._connection.call("upload_part", doing, **upload, PartNumber=number, Body=data)
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        return parts

    def _sweep(self) -> None:
        """Once a process. Someone without the right to list uploads can push all the same."""
        if not self._swept:
            self._swept = True
            with contextlib.suppress(RemoteError):
                self.abort_leftovers()

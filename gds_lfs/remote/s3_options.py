"""What an `s3://bucket/prefix` URL names, and what a user can say about how to reach it. Needs no boto3."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from gds_lfs.errors import RemoteError

__all__ = ["Bucket", "S3Options", "check_region", "parse_endpoint", "parse_url"]

_URL = re.compile(r"s3://([^/]*)(?:/(.*))?", re.IGNORECASE | re.DOTALL)
# What S3 has ever allowed; an access point's ARN would choose a host of its own.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]", re.ASCII)
_ENDPOINT = re.compile(
    r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9/._~%-]*)?", re.ASCII | re.IGNORECASE
)
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Bucket(NamedTuple):
    """A bucket, and the prefix of our keys in it: empty, or ending with '/'."""

    name: str
    prefix: str

    @property
    def url(self) -> str:
        """The one spelling of its URL."""
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


@dataclass(frozen=True)
class S3Options:
    """How to reach a bucket. What is None is left to boto3: its environment variables, files and defaults.

    `path_style` None means path style for an endpoint of one's own, and boto3's choice for AWS. `encryption` and
    `storage_class` are S3's words (`aws:kms`, `STANDARD_IA`). `timeout` is how long to wait for a silent server.
    """

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    path_style: bool | None = None
    storage_class: str | None = None
    encryption: str | None = None
    kms_key: str | None = None
    timeout: float = 30.0


def parse_url(url: str) -> Bucket:
    """The bucket and prefix that a URL names. Raises RemoteError for one that names none."""
    match = _URL.fullmatch(url)
    if match is None:
        raise RemoteError(f"{url}: this is no s3://bucket/prefix.")
    name, path = match[1], match[2] or ""
    if "@" in name or ":" in name:
        # It may hold a secret, so it is not repeated.
        raise RemoteError(
            "An s3:// URL names a bucket and a prefix alone: credentials belong in AWS's own environment variables "
            "or files, a server's address in datasets.endpoint."
        )
    if not _BUCKET.fullmatch(name):
        raise RemoteError(f"{url}: {name!r} is no bucket's name; the URL has the form s3://bucket/prefix.")
    if _CONTROL.search(path):
        raise RemoteError(f"{url!r}: the prefix has control characters.")
    parts = [part for part in path.split("/") if part]
    if not {".", ".."}.isdisjoint(parts):  # programs on the way would take them for folders
        raise RemoteError(f"{url}: the prefix has '.' or '..' between its slashes.")
    return Bucket(name, "".join(f"{part}/" for part in parts))


def parse_endpoint(endpoint: str) -> str:
    """The one spelling of a server's address, so that equal ones compare equal. Raises RemoteError."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        raise RemoteError(
            "A dataset remote's endpoint has the form https://host or http://host:port, "
            "without a user, a password or a query."
        )
    scheme, host, port, path = match[1].lower(), match[2].lower(), match[3] or "", (match[4] or "").rstrip("/")
    default = {"http": ":80", "https": ":443"}[scheme]
    return f"{scheme}://{host}{'' if port == default else port}{path}"


def check_region(region: str) -> str:
    """The region, if it can be one: it becomes part of a host's name. Raises RemoteError."""
    if not _REGION.fullmatch(region):
        raise RemoteError(f"{region!r} is no region's name; they look like eu-central-1.")
    return region

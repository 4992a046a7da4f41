"""How a repository's `s3://` remote is reached: what the user set, what a tracked file proposes, and whom to trust.

Each setting is `datasets.<key>` in git's config, or one of the forms for one git remote (`git/remotes.py`):

    endpoint      the server's address, where it is not AWS
    region        of the bucket
    profile       of AWS's own config files, to take credentials from
    pathstyle     true or false: whether the bucket stands in the URL's path or in the host's name
    storageclass  of new objects, such as STANDARD_IA
    encryption    of new objects: AES256, aws:kms or aws:kms:dsse
    kmskey        the id of the key for aws:kms
    timeout       seconds to wait for a silent server

The tracked `.datasetsconfig` may name an endpoint and a region for the remote that it names. A request carries a
signature made with the user's credentials, so a server that only a tracked file names gets none: not before
`git datasets link` has approved it for this user (`datasets.trustedendpoint` in the user's own config).
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError, RemoteError
from gds_lfs.git.remotes import setting_key
from gds_lfs.remote.s3_options import S3Options, check_region, parse_endpoint, parse_url

if TYPE_CHECKING:
    from gds_lfs.git.config import DatasetsConfig, Settings

TRUSTED_ENDPOINT = "datasets.trustedendpoint"
ENCRYPTIONS = ("AES256", "aws:kms", "aws:kms:dsse")


def is_s3(url: str) -> bool:
    return url.lower().startswith("s3://")


def s3_options(settings: Settings, shared: DatasetsConfig, git_remote: str, url: str) -> S3Options:
    """The options for an `s3://` URL in effect. Raises RemoteError for a server that nobody has approved."""

    def key_of(setting: str) -> str | None:
        return setting_key(settings, git_remote, setting)

    def own(setting: str) -> str | None:
        key = key_of(setting)
        return settings.get(key) if key else None

    proposed = shared if url == shared.remote else None  # what it says is about its own URL alone
    endpoint = own("endpoint") or settings.s3_endpoint
    if endpoint is None and proposed is not None and proposed.endpoint:
        endpoint = _approved(settings, proposed)
    region = own("region") or (proposed.region if proposed else None)
    return S3Options(
        endpoint=parse_endpoint(endpoint) if endpoint else None,
        region=check_region(region) if region else None,
        profile=own("profile"),
        path_style=_boolean(settings, key_of("pathstyle")),
        storage_class=own("storageclass"),
        encryption=_encryption(settings, key_of("encryption")),
        kms_key=own("kmskey"),
        timeout=_seconds(settings, key_of("timeout")),
    )


def trusted(settings: Settings, endpoint: str) -> bool:
    """Whether the user has approved this server."""
    return endpoint in settings.get_all(TRUSTED_ENDPOINT)


def link_command(url: str, endpoint: str | None, region: str | None, *, local: bool = False) -> str:
    """The command that names such a place, safe to paste whatever a tracked file says."""
    options = [*(["--endpoint", endpoint] if endpoint else []), *(["--region", region] if region else [])]
    return shlex.join(["git", "datasets", "link", *(["--local"] if local else []), url, *options])


def address(url: str, endpoint: str | None) -> str:
    """A place in one word or two, for config and messages: a URL, and its server where one is named."""
    return f"{url} {endpoint}" if endpoint else url


def split_address(text: str) -> tuple[str, str | None]:
    """What `address` was made of. A folder's name may have spaces in it."""
    found = re.fullmatch(r"(s3://.*) (https?://\S+)", text, re.IGNORECASE | re.DOTALL)
    return (found[1], found[2]) if found else (text, None)


def checked_place(url: str, endpoint: str | None, region: str | None) -> tuple[str | None, str | None]:
    """Endpoint and region as they are kept. Raises ConfigError or RemoteError where they, or the URL, are none."""
    if is_s3(url):
        parse_url(url)
        return (parse_endpoint(endpoint) if endpoint else None), (check_region(region) if region else None)
    if endpoint or region:
        raise ConfigError(f"--endpoint and --region are for s3:// URLs; {url} is none")
    return None, None


def _approved(settings: Settings, proposed: DatasetsConfig) -> str:
    assert proposed.endpoint is not None
    endpoint = parse_endpoint(proposed.endpoint)
    if not trusted(settings, endpoint):
        raise RemoteError(
            f".datasetsconfig names the server {endpoint}, which would get requests signed with your credentials; "
            f"if you trust it: `{link_command(proposed.remote or '', endpoint, proposed.region)}`"
        )
    return endpoint


def _boolean(settings: Settings, key: str | None) -> bool | None:
    """What a key says, in any of git's spellings. Raises ConfigError for anything else."""
    if key is None:
        return None
    value = settings.get(key) or ""
    if not re.fullmatch(r"true|yes|on|false|no|off|[+-]?\d+", value.strip(), re.IGNORECASE | re.ASCII):
        raise ConfigError(f"{key} is {value!r}, which is neither true nor false: git config {key} true (or false)")
    return settings.get_bool(key)


def _encryption(settings: Settings, key: str | None) -> str | None:
    value = settings.get(key) if key else None
    if value and value not in ENCRYPTIONS:
        raise ConfigError(f"{key} is {value!r}, which is none of {', '.join(ENCRYPTIONS)}")
    return value


def _seconds(settings: Settings, key: str | None) -> float:
    if key is None:
        return S3Options.timeout
    value = settings.get(key) or ""
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ConfigError(f"{key} is {value}, which is no number of seconds")
    return seconds

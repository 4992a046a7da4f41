"""What an S3 server answers in place of what was asked for, in the user's words.

Error codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html. An answer to HEAD has no body, so
its code is the bare HTTP status, and so it is where something other than the server answers.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import NoSuchKeyError, ShortBodyError, SlowDownError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "EXPIRED", "LOG_IN", "PROXY_LOGIN", "Answer", "ForeignAnswerError", "Request", "is_foreign", "is_passing",
    "one_line", "refused", "wrong_proxy_login",
]  # fmt: skip

EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_SLOW_DOWN = {
    "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "BandwidthLimitExceeded",
    "TooManyRequests", "TooManyRequestsException", "ServiceUnavailable", "429", "503",
}  # fmt: skip
_LATER = {
    "InternalError", "RequestTimeout", "RequestTimeoutException", "OperationAborted", "IncompleteBody",
    "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch", "NoSuchUpload",
}  # fmt: skip
_RIGHTS = {"list_objects_v2": "s3:ListBucket", "delete_object": "s3:DeleteObject"}
_FORBIDDEN = 403
PROXY_LOGIN = 407
_CONFLICT = 409
_NOT_IMPLEMENTED = 501
#: A signature that is this old (seconds) by the server's clock was made by a slow request, not by a wrong clock.
_SLOW_REQUEST = 5 * 60

LOG_IN = (
    "Log in again (`aws sso login`, or whatever gives you credentials) and repeat the command; what was sent stays."
)
_LONGEST_QUOTE = 200
_LIST = re.compile(rb"<(\w+:)?(ListBucketResult|Error)\b")


class Request(NamedTuple):
    """What was asked, for the message: where (bucket and server), and what was to be done there."""

    place: str
    bucket: str
    operation: str
    doing: str


class ForeignAnswerError(Exception):
    """What answers is no S3 server."""


class Answer(NamedTuple):
    """What the server said."""

    request: Request
    code: str
    status: int
    fields: Mapping[str, str]
    headers: Mapping[str, str]

    @property
    def place(self) -> str:
        return self.request.place

    @property
    def doing(self) -> str:
        return self.request.doing

    @property
    def message(self) -> str:
        """The server's own sentence."""
        return one_line(self.fields.get("Message") or "the server refuses")


def refused(answer: Answer) -> Exception:
    """The error to raise for it."""
    known = _ANSWERS.get(answer.code)
    if known is not None:
        return known(answer)
    place, doing, code = answer.place, answer.doing, answer.code
    if code in _SLOW_DOWN or answer.status in (429, 503):
        return SlowDownError(f"{place}: the server asks for fewer requests ({code}); try again later.")
    if code in _LATER or answer.status == _CONFLICT or is_passing(answer.status):
        return TransientRemoteError(f"{place}: the server failed to {doing} ({code}).")
    if code in EXPIRED:
        return RemoteError(f"{place}: your credentials have expired. {LOG_IN}")
    if code == "400" and answer.request.operation == "head_object":
        return RemoteError(
            f"{place}: cannot {doing}: the server does not say why ({code}); perhaps your credentials have expired."
        )
    return RemoteError(f"{place}: cannot {doing}: {answer.message} ({code}).")


def is_passing(status: int) -> bool:
    """Whether an HTTP status tells of a failure on the other side that may pass."""
    return status in (408, 429) or (status >= 500 and status != _NOT_IMPLEMENTED)


def is_foreign(status: int, body: bytes) -> bool:
    """Whether an answer to a list is none that an S3 server gives: neither a list nor an error of S3.

    Failures that may pass, and a refusal, may come from whatever stands before a server.
    """
    return not (is_passing(status) or status in (_FORBIDDEN, PROXY_LOGIN) or _LIST.search(body))


def wrong_proxy_login(place: str) -> RemoteError:
    """For a proxy's 407."""
    return RemoteError(
        f"{place}: the proxy does not accept your login (407): check the user and the password in HTTPS_PROXY and "
        "HTTP_PROXY."
    )


def one_line(text: str) -> str:
    """The beginning of it; botocore writes what is wrong below a line that only says that something is."""
    return " ".join(text.split())[:_LONGEST_QUOTE]


def _denied(answer: Answer) -> Exception:
    if answer.request.operation in ("head_object", "get_object"):
        return RemoteError(
            f"{answer.place}: cannot {answer.doing}: it is not there, or you have no permission for it "
            "(s3:GetObject, and s3:ListBucket to tell the two apart)."
        )
    right = _RIGHTS.get(answer.request.operation, "s3:PutObject")
    return RemoteError(
        f"{answer.place}: no permission to {answer.doing}. Ask the bucket's owner for {right}, or use other "
        "credentials (AWS_PROFILE, git config datasets.profile)."
    )


def _no_key(answer: Answer) -> Exception:
    return NoSuchKeyError(f"{answer.place}: cannot {answer.doing}: it is not there.")


def _no_bucket(answer: Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: there is no bucket {answer.request.bucket!r}. "
        "Create it, or correct the name with `git datasets link`."
    )


def _short(answer: Answer) -> Exception:
    return ShortBodyError(f"{answer.place}: cannot {answer.doing}: it ends before that.")


def _bad_key(answer: Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: the server does not accept your credentials ({answer.code}): "
        "check the access key and its secret, and that they belong to this server."
    )


def _bad_token(answer: Answer) -> Exception:
    return RemoteError(f"{answer.place}: the server does not accept your session token. {LOG_IN}")


def _elsewhere(answer: Answer) -> Exception:
    region = answer.headers.get("x-amz-bucket-region") or answer.fields.get("Region")
    if answer.code == "AuthorizationHeaderMalformed" and not region:
        return _bad_key(answer)
    where = (
        f"the region {region}: git config datasets.region {region}" if region else "another one: set datasets.region"
    )
    return RemoteError(f"{answer.place}: wrong region; the bucket {answer.request.bucket!r} is in {where}")


def _skewed(answer: Answer) -> Exception:
    seconds = _seconds_ahead(answer.headers.get("date", ""))
    if seconds is None:
        return RemoteError(f"{answer.place}: by the server's clock yours is wrong. Set it and repeat the command.")
    if abs(seconds) < _SLOW_REQUEST:
        return TransientRemoteError(f"{answer.place}: it took too long to {answer.doing}; the server did not wait.")
    way = "ahead of" if seconds > 0 else "behind"
    return RemoteError(
        f"{answer.place}: your clock is off by {round(abs(seconds) / 60)} min ({way} the server's). "
        "Set it and repeat the command."
    )


def _seconds_ahead(date: str) -> float | None:
    """How far our clock is ahead of an HTTP date."""
    try:
        theirs = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return (datetime.now(timezone.utc) - theirs.astimezone(timezone.utc)).total_seconds()


def _archived(answer: Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: cannot {answer.doing}: it is in an archive's storage class. Restore it there first."
    )


_ANSWERS: dict[str, Callable[[Answer], Exception]] = {
    "AccessDenied": _denied, "AllAccessDisabled": _denied, "Forbidden": _denied, "403": _denied,
    "NoSuchKey": _no_key, "NotFound": _no_key, "404": _no_key,
    "NoSuchBucket": _no_bucket,
    "InvalidRange": _short, "416": _short,
    "InvalidAccessKeyId": _bad_key, "SignatureDoesNotMatch": _bad_key, "AuthFailure": _bad_key,
    "InvalidToken": _bad_token,
    "AuthorizationHeaderMalformed": _elsewhere, "IllegalLocationConstraintException": _elsewhere,
    "PermanentRedirect": _elsewhere, "TemporaryRedirect": _elsewhere, "301": _elsewhere,
    "RequestTimeTooSkewed": _skewed,
    "InvalidObjectState": _archived,
    "407": lambda answer: wrong_proxy_login(answer.place),  # where a proxy passes requests on as they are: over http
}  # fmt: skip

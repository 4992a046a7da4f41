"""What boto3 raises, in the user's words.

Three kinds matter: what may go through later (TransientRemoteError; SlowDownError where the server asked for
fewer requests), what is answered by other means (NoSuchKeyError, ShortBodyError), and what the user has to mend.
Messages name the bucket, the key and the way out. They quote no request, since requests carry credentials.

Error codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html. An answer to HEAD has no body, so
its code is the bare HTTP status.
"""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from botocore import exceptions as boto
from urllib3.exceptions import HTTPError

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import NoSuchKeyError, ShortBodyError, SlowDownError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Request", "code_of", "is_expired", "translated"]

_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_SLOW_DOWN = {
    "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "BandwidthLimitExceeded",
    "TooManyRequests", "TooManyRequestsException", "ServiceUnavailable", "429", "503",
}  # fmt: skip
_LATER = {
    "InternalError", "RequestTimeout", "RequestTimeoutException", "OperationAborted", "IncompleteBody",
    "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch", "NoSuchUpload",
}  # fmt: skip
_RIGHTS = {"list_objects_v2": "s3:ListBucket", "delete_object": "s3:DeleteObject"}
_CONFLICT = 409
_NOT_IMPLEMENTED = 501
#: A signature that is this old (seconds) by the server's clock was made by a slow request, not by a wrong clock.
_SLOW_REQUEST = 5 * 60
_LONGEST_QUOTE = 200

_LOGIN = (
    "Log in again (`aws sso login`, or whatever gives you credentials) and repeat the command; what was sent stays."
)


class Request(NamedTuple):
    """What was asked, for the message: where (bucket and server), and what was to be done there."""

    place: str
    bucket: str
    operation: str
    doing: str


class _Answer(NamedTuple):
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


def code_of(error: BaseException | None) -> str:
    """The server's own word for an error; empty for what is no answer of a server."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""


def is_expired(error: BaseException) -> bool:
    """Whether credentials looked up anew may help: those in use have run out."""
    code = code_of(error)
    return code in _EXPIRED or (code == "400" and getattr(error, "operation_name", "") == "HeadObject")


def translated(error: Exception, request: Request) -> Exception:
    """The error to raise in place of boto3's; one that is none of its is given back."""
    if isinstance(error, boto.ClientError):
        return _from_answer(error, request)
    for kinds, raised, sentence in _FAILURES:
        if isinstance(error, kinds):
            return raised(f"{request.place}: {sentence}")
    if isinstance(error, (boto.HTTPClientError, boto.ConnectionError, HTTPError)):
        return TransientRemoteError(
            f"{request.place}: the connection broke while trying to {request.doing} ({type(error).__name__})."
        )
    if isinstance(error, (boto.BotoCoreError, ValueError)):
        return RemoteError(f"{request.place}: cannot {request.doing}: {_first_line(str(error))}")
    return error


def _from_answer(error: boto.ClientError, request: Request) -> Exception:
    told = error.response.get("ResponseMetadata", {})
    status = int(told.get("HTTPStatusCode", 0))
    code = code_of(error) or str(status)
    answer = _Answer(request, code, status, error.response.get("Error", {}), told.get("HTTPHeaders", {}))
    known = _ANSWERS.get(code)
    if known is not None:
        return known(answer)
    if code in _SLOW_DOWN or status in (429, 503):
        return SlowDownError(f"{request.place}: the server asks for fewer requests ({code}); try again later.")
    if code in _LATER or status == _CONFLICT or (status >= 500 and status != _NOT_IMPLEMENTED):
        return TransientRemoteError(f"{request.place}: the server failed to {request.doing} ({code}).")
    if code in _EXPIRED:
        return RemoteError(f"{request.place}: your credentials have expired. {_LOGIN}")
    if is_expired(error):
        return RemoteError(
            f"{request.place}: cannot {request.doing}: the server does not say why ({code}); "
            "perhaps your credentials have expired."
        )
    said = _first_line(answer.fields.get("Message") or "the server refuses")
    return RemoteError(f"{request.place}: cannot {request.doing}: {said} ({code}).")


def _denied(answer: _Answer) -> Exception:
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


def _no_key(answer: _Answer) -> Exception:
    return NoSuchKeyError(f"{answer.place}: cannot {answer.doing}: it is not there.")


def _no_bucket(answer: _Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: there is no bucket {answer.request.bucket!r}. "
        "Create it, or correct the name with `git datasets link`."
    )


def _short(answer: _Answer) -> Exception:
    return ShortBodyError(f"{answer.place}: cannot {answer.doing}: it ends before that.")


def _bad_key(answer: _Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: the server does not accept your credentials ({answer.code}): "
        "check the access key and its secret, and that they belong to this server."
    )


def _bad_token(answer: _Answer) -> Exception:
    return RemoteError(f"{answer.place}: the server does not accept your session token. {_LOGIN}")


def _elsewhere(answer: _Answer) -> Exception:
    region = answer.headers.get("x-amz-bucket-region") or answer.fields.get("Region")
    if answer.code == "AuthorizationHeaderMalformed" and not region:
        return _bad_key(answer)
    where = (
        f"the region {region}: git config datasets.region {region}" if region else "another one: set datasets.region"
    )
    return RemoteError(f"{answer.place}: wrong region; the bucket {answer.request.bucket!r} is in {where}")


def _skewed(answer: _Answer) -> Exception:
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


def _archived(answer: _Answer) -> Exception:
    return RemoteError(
        f"{answer.place}: cannot {answer.doing}: it is in an archive's storage class. Restore it there first."
    )


_ANSWERS: dict[str, Callable[[_Answer], Exception]] = {
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
}  # fmt: skip

_Kinds = tuple[type[BaseException], ...]
_FAILURES: list[tuple[_Kinds, type[RemoteError], str]] = [
    (
        (boto.NoCredentialsError,),
        RemoteError,
        (
            "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run "
            "`aws configure`."
        ),
    ),
    (
        (boto.PartialCredentialsError,),
        RemoteError,
        "half of the credentials are missing: an access key and its secret come from the same source.",
    ),
    (
        (boto.ProfileNotFound,),
        RemoteError,
        (
            "AWS's config has no such profile: check git config datasets.profile and AWS_PROFILE "
            "(`aws configure list-profiles`)."
        ),
    ),
    (
        (boto.TokenRetrievalError, boto.SSOError, boto.CredentialRetrievalError),
        RemoteError,
        f"your credentials could not be renewed. {_LOGIN}",
    ),
    (
        (boto.ProxyConnectionError, boto.InvalidProxiesConfigError),
        TransientRemoteError,
        "the proxy does not answer: check HTTPS_PROXY and HTTP_PROXY, or name the server in NO_PROXY.",
    ),
    (
        (boto.SSLError,),
        RemoteError,
        (
            "the server's certificate is not trusted, or is not for this name: for an authority of your own, set "
            "AWS_CA_BUNDLE to its certificate's file."
        ),
    ),
    (
        (boto.EndpointConnectionError, boto.ConnectTimeoutError),
        TransientRemoteError,
        "the server cannot be reached: check its address (datasets.endpoint, AWS_ENDPOINT_URL) and the network.",
    ),
    ((boto.ReadTimeoutError,), TransientRemoteError, "the server has stopped answering."),
    (
        (boto.NoRegionError, boto.InvalidRegionError),
        RemoteError,
        "no usable region: git config datasets.region, or AWS_DEFAULT_REGION.",
    ),
]


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:_LONGEST_QUOTE]

"""What boto3 raises, in the user's words.

Three kinds matter: what may go through later (TransientRemoteError; SlowDownError where the server asked for
fewer requests), what is answered by other means (NoSuchKeyError, ShortBodyError), and what the user has to mend.
Messages name the bucket, the key and the way out. They quote no request, since requests carry credentials.

What a proxy answers to CONNECT is no answer of the server: botocore has one error for all of it, and the status is in
the text of that error's cause. It also has one error for all that goes wrong with TLS, a connection that breaks
included. Services that hand out credentials answer for themselves too.
"""

from __future__ import annotations

import re

from botocore import exceptions as boto
from botocore import xform_name
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote import tls
from gds_lfs.remote.s3_answers import (
    EXPIRED,
    LOG_IN,
    PROXY_LOGIN,
    Answer,
    ForeignAnswerError,
    Request,
    is_passing,
    one_line,
    refused,
    wrong_proxy_login,
)

__all__ = ["Request", "code_of", "is_expired", "translated"]

#: How both urllib3 and http.client begin to tell what a proxy answered.
_NO_TUNNEL = re.compile(r"Tunnel connection failed: (\d{3})")
_BROKEN = (boto.HTTPClientError, boto.ConnectionError, boto.IncompleteReadError, ResponseParserError, HTTPError)


def code_of(error: BaseException | None) -> str:
    """The server's own word for an error; empty for what is no answer of a server."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""


def is_expired(error: BaseException) -> bool:
    """Whether credentials looked up anew may help: those in use have run out."""
    code = code_of(error)
    return code in EXPIRED or (code == "400" and getattr(error, "operation_name", "") == "HeadObject")


def translated(error: Exception, request: Request) -> Exception:
    """The error to raise in place of boto3's; one that is none of its is given back."""
    if isinstance(error, boto.ClientError):
        return _from_answer(error, request)
    if isinstance(error, boto.ProxyConnectionError):
        return _from_proxy(error, request.place)
    for kinds, raised, sentence in _FAILURES:
        if isinstance(error, kinds):
            return raised(f"{request.place}: {sentence}")
    if isinstance(error, _BROKEN):
        return _from_connection(error, request)
    if isinstance(error, (boto.BotoCoreError, ValueError)):
        return RemoteError(f"{request.place}: cannot {request.doing}: {one_line(str(error))}")
    return error


def _from_answer(error: boto.ClientError, request: Request) -> Exception:
    told = error.response.get("ResponseMetadata", {})
    status = int(told.get("HTTPStatusCode", 0))
    code = code_of(error) or str(status)
    answer = Answer(request, code, status, error.response.get("Error", {}), told.get("HTTPHeaders", {}))
    if xform_name(error.operation_name) == request.operation:
        return refused(answer)
    if is_passing(status):
        return TransientRemoteError(f"{request.place}: {error.operation_name} failed to give credentials ({code}).")
    return RemoteError(
        f"{request.place}: no credentials from {error.operation_name}: {answer.message} ({code}). Check the role of "
        "your profile (AWS_PROFILE, git config datasets.profile) or log in again."
    )


def _from_proxy(error: boto.ProxyConnectionError, place: str) -> RemoteError:
    """What a proxy answers that was asked to connect to the server, if it answers."""
    said = _NO_TUNNEL.search(str(error.kwargs.get("error")))
    if said is None:
        return TransientRemoteError(
            f"{place}: the proxy does not answer: check HTTPS_PROXY and HTTP_PROXY, or name the server in NO_PROXY."
        )
    status = int(said[1])
    if status == PROXY_LOGIN:
        return wrong_proxy_login(place)
    if is_passing(status):
        return TransientRemoteError(
            f"{place}: the proxy cannot reach the server ({status}): check its address, or name it in NO_PROXY."
        )
    return RemoteError(
        f"{place}: the proxy does not let you reach the server ({status}): ask whoever runs the proxy, check "
        "HTTPS_PROXY and HTTP_PROXY, or name the server in NO_PROXY."
    )


def _from_connection(error: Exception, request: Request) -> RemoteError:
    """A connection that broke, or that was never made: a ValueError means that there is nothing that could be sent."""
    cause = error.kwargs.get("error") if isinstance(error, boto.BotoCoreError) else None
    if isinstance(error, boto.SSLError):
        told = cause.args[0] if isinstance(cause, HTTPError) and cause.args else cause
        if not tls.is_passing(told):
            return RemoteError(f"{request.place}: {tls.fault(told)}")
    if not isinstance(cause, ValueError):
        return TransientRemoteError(
            f"{request.place}: the connection broke while trying to {request.doing} ({type(error).__name__})."
        )
    # Its own text is not for messages: it quotes the signature, or the session token.
    if "header" in str(cause):
        wrong = "your access key or session token has a character that no request can carry: a line break at its end?"
    else:
        wrong = "an address cannot be read: check HTTPS_PROXY, HTTP_PROXY and datasets.endpoint."
    return RemoteError(f"{request.place}: {wrong}")


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
        f"your credentials could not be renewed. {LOG_IN}",
    ),
    (
        (boto.EndpointConnectionError, boto.ConnectTimeoutError),
        TransientRemoteError,
        "the server cannot be reached: check its address (datasets.endpoint, AWS_ENDPOINT_URL) and the network.",
    ),
    (
        (ForeignAnswerError,),
        RemoteError,
        "what answers there is no S3 server: check its address (datasets.endpoint, AWS_ENDPOINT_URL).",
    ),
    ((boto.ReadTimeoutError,), TransientRemoteError, "the server has stopped answering."),
    (
        (boto.NoRegionError, boto.InvalidRegionError),
        RemoteError,
        "no usable region: git config datasets.region, or AWS_DEFAULT_REGION.",
    ),
]

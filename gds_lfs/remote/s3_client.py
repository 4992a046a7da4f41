"""The connection to S3: one boto3 client for all threads, each request counted, its errors translated.

boto3 finds credentials and region by its own chain: environment, profile, SSO, instance role. Its retries are
off, since whoever asks knows better what to try again and how many requests may run side by side.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gds_lfs.errors import RemoteError

if TYPE_CHECKING:
    from gds_lfs.remote.s3_options import Bucket, S3Options

__all__ = ["Connection"]

_CONNECT_TIMEOUT = 10.0
_AWS = (".amazonaws.com", ".amazonaws.com.cn")


class Connection:
    """Requests to one bucket. Nothing is imported or looked up before the first one."""

    def __init__(self, bucket: Bucket, options: S3Options, parallel: int) -> None:
        self.bucket = bucket
        self.place = f"{bucket.url} ({options.endpoint})" if options.endpoint else bucket.url
        self.options = options
        #: Requests sent so far, by the name of S3's operation.
        self.requests: Counter[str] = Counter()
        self._parallel = parallel
        self._lock = threading.Lock()
        self._client: Any = None
        self._keys: tuple[object, ...] = ()

    def call(self, operation: str, doing: str, **parameters: object) -> dict[str, Any]:
        """One request. `doing` completes "cannot ..." in a message. Raises RemoteError.

        Credentials that have expired are looked up anew, once.
        """
        with self._lock:  # two threads that import parts of boto3 at once may each see the other's unfinished modules
            from gds_lfs.remote.s3_errors import Request, is_expired, translated

        parameters["Bucket"] = self.bucket.name
        request = Request(self.place, self.bucket.name, operation, doing)
        try:
            client = self._connected()
            try:
                return self._send(client, operation, parameters)
            except Exception as error:
                if not is_expired(error) or not self._renew(client):
                    raise
            return self._send(self._connected(), operation, parameters)
        except RemoteError:
            raise
        except Exception as error:
            problem = translated(error, request)
            if problem is error:
                raise
            raise problem from error

    def warm_up(self) -> None:
        """Connect, so that the first request need not. What is wrong is told by that request."""
        with contextlib.suppress(Exception):
            self._connected()

    def read(self, answer: dict[str, Any], doing: str) -> bytes:
        """The body of an answer, whole. Raises TransientRemoteError where it is cut off on its way."""
        from gds_lfs.remote.s3_errors import Request, translated

        try:
            with answer["Body"] as body:
                data: bytes = body.read()
                return data
        except Exception as error:
            problem = translated(error, Request(self.place, self.bucket.name, "get_object", doing))
            if problem is error:
                raise
            raise problem from error

    @staticmethod
    def _send(client: Any, operation: str, parameters: dict[str, object]) -> dict[str, Any]:
        body: Any = parameters.get("Body")
        if hasattr(body, "seek"):
            body.seek(0)
        answer: dict[str, Any] = getattr(client, operation)(**parameters)
        return answer

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client, self._keys = self._connect()
            return self._client

    def _renew(self, old: Any) -> bool:
        """Look the credentials up anew, unless another thread just did; False if they are still the same."""
        with self._lock:
            if self._client is old:
                client, keys = self._connect()
                if keys == self._keys:
                    return False
                self._client, self._keys = client, keys
            return True

    def _connect(self) -> tuple[Any, tuple[object, ...]]:
        import boto3
        import botocore.session

        from gds_lfs.remote.s3_models import use_fast_models

        options = self.options
        core = botocore.session.Session(profile=options.profile)
        use_fast_models(core)
        session = boto3.Session(region_name=options.region, botocore_session=core)
        client = self._make_client(session, own=options.endpoint is not None)
        host = urlsplit(client.meta.endpoint_url).hostname or ""
        if options.endpoint is None and not host.endswith(_AWS):  # named by AWS_ENDPOINT_URL, or by a profile
            client = self._make_client(session, own=True)
        client.meta.events.register("before-send.s3", self._count)
        client.meta.events.register("before-parse.s3", _refuse_short)
        # The first wildcard makes it come before botocore's own, which makes a 500 of a 200 whose text is no XML.
        client.meta.events.register("before-parse.*.ListObjectsV2", _refuse_foreign)
        found = session.get_credentials()
        return client, tuple(found.get_frozen_credentials()) if found else ()

    def _make_client(self, session: Any, *, own: bool) -> Any:
        """A client of AWS, or with `own` of another server, which may know less than AWS does."""
        from botocore.config import Config

        options = self.options
        path_style = own if options.path_style is None else options.path_style
        style = "path" if path_style else "auto" if options.path_style is None else "virtual"
        # Newer checksums arrive as trailers, which not every server understands, or even keeps out of the object.
        checksums = "when_required" if own else "when_supported"
        config = Config(
            connect_timeout=_CONNECT_TIMEOUT,
            read_timeout=options.timeout,
            max_pool_connections=self._parallel,
            retries={"mode": "standard", "total_max_attempts": 1},
            s3={"addressing_style": style},
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
            user_agent_extra="git-datasets",
        )
        return session.client("s3", endpoint_url=options.endpoint, config=config)

    def _count(self, event_name: str, **_: object) -> None:
        with self._lock:
            self.requests[event_name.rpartition(".")[2]] += 1


def _refuse_short(response_dict: dict[str, Any], operation_model: Any, **_: object) -> None:
    """Raise where an answer ended early: of a list that lost its whole body botocore makes an empty list."""
    from botocore.exceptions import IncompleteReadError

    body, promised = response_dict["body"], response_dict["headers"].get("content-length")
    if promised and isinstance(body, bytes) and operation_model.http["method"] != "HEAD" and len(body) < int(promised):
        raise IncompleteReadError(actual_bytes=len(body), expected_bytes=promised)


def _refuse_foreign(response_dict: dict[str, Any], operation_model: Any, **_: object) -> None:
    """Raise where a list, the first thing that is asked for, is answered by a server of another kind.

    botocore takes any well-formed page for an empty list, and follows a redirect of one until its stack is full.
    """
    from gds_lfs.remote.s3_answers import ForeignAnswerError, is_foreign

    _refuse_short(response_dict, operation_model)
    if is_foreign(response_dict["status_code"], response_dict["body"]):
        raise ForeignAnswerError

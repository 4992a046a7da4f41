"""A server on 127.0.0.1 that speaks enough S3 for our requests, and fails on demand.

It keeps objects in memory, checks no signature, and is strict about what some servers cannot do: a body in chunks
with a checksum as trailer, or any checksum header, is refused. `fault` sees every request before it is served and may
answer in its place. Every request is recorded, and every connection counted. As a proxy it takes requests for any
server; a tunnel to one is refused, but recorded too, with where it was to lead as its `host`.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from gds_lfs.remote.base import open_remote
from gds_lfs.remote.s3 import S3Remote
from gds_lfs.remote.s3_options import S3Options

BLOCK = 1 << 20
SECRETS = ("a-secret-that-no-message-shows", "AKIASTUB", "Signature=")


@dataclass
class Call:
    """One request."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    size: int = 0

    @property
    def operation(self) -> str:
        """S3's name for it."""
        if self.method == "CONNECT":
            return "Connect"
        if self.method == "PUT":
            return "UploadPart" if "partNumber" in self.query else "PutObject"
        if self.method == "POST":
            return "CreateMultipartUpload" if "uploads" in self.query else "CompleteMultipartUpload"
        if self.method == "DELETE":
            return "AbortMultipartUpload" if "uploadId" in self.query else "DeleteObject"
        if self.method == "HEAD":
            return "HeadObject"
        if self.key:
            return "GetObject"
        return "ListMultipartUploads" if "uploads" in self.query else "ListObjectsV2"

    @property
    def token(self) -> str:
        return self.headers.get("x-amz-security-token", "")


@dataclass
class Fault:
    """What to answer in place of serving: an error, after reading the body, or this very `page`; or a body cut short;
    or nothing.
    """

    status: int = 0
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    cut: float | None = None
    stall: float = 0.0
    page: bytes | None = None


@final
class Stub:
    """The server; `with Stub() as stub` runs it. `endpoint` is where."""

    def __init__(self, certificate: Path | None = None, *, keep: bool = True, page: int = 1000) -> None:
        self.objects: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes | int], float]] = {}
        self.calls: list[Call] = []
        self.connections = 0
        self.fault: Callable[[Call], Fault | None] = lambda call: None
        self.conditional = True
        self.buckets = {"bucket", "dotted.bucket"}
        self.keep = keep
        self.page = page
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.endpoint = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Stub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def counted(self) -> Counter[str]:
        """The requests since the last time, by operation."""
        with self.lock:
            calls, self.calls = self.calls, []
        return Counter(call.operation for call in calls)

    def puts(self) -> list[str]:
        """The keys of all objects that were stored in one request."""
        return [call.key for call in self.calls if call.operation == "PutObject"]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    stub: Stub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def setup(self) -> None:
        super().setup()
        with self.stub.lock:
            self.stub.connections += 1

    def serve(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = Call(self.command, bucket, key, dict(parse_qsl(parts.query, keep_blank_values=True)), headers)
        self.call = call
        body = self.body()
        call.size = body if isinstance(body, int) else len(body)
        with self.stub.lock:
            self.stub.calls.append(call)
            fault = self.stub.fault(call)
        if fault is not None and fault.stall:
            time.sleep(fault.stall)
            self.close_connection = True
        elif fault is not None and fault.page is not None:
            self.answer(fault.status, fault.page, **fault.headers)
        elif fault is not None and fault.status:
            self.error(fault.status, fault.code, fault.headers, fault.fields)
        elif bucket not in self.stub.buckets:
            self.error(404, "NoSuchBucket")
        elif any("checksum" in name or name == "x-amz-trailer" for name in headers) or "content-encoding" in headers:
            self.error(400, "InvalidRequest")
        else:
            getattr(self, call.operation)(call, body, fault.cut if fault else None)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = serve

    def do_CONNECT(self) -> None:
        call = Call(self.command, "", "", {}, {name.lower(): value for name, value in self.headers.items()})
        call.headers["host"] = self.path
        with self.stub.lock:
            self.stub.calls.append(call)
            fault = self.stub.fault(call)
        self.error(fault.status if fault else 502, "")

    def body(self) -> bytes | int:
        left = int(self.headers.get("Content-Length") or 0)
        pieces, size = [], 0
        while left and (piece := self.rfile.read(min(left, BLOCK))):
            left -= len(piece)
            size += len(piece)
            if self.stub.keep or self.command != "PUT":
                pieces.append(piece)
        if left:
            raise ConnectionError("the client hung up")
        return b"".join(pieces) if self.stub.keep or self.command != "PUT" else size

    def answer(self, status: int, body: bytes = b"", cut: float | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "HEAD" or "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut is not None:
            self.wfile.write(body[: int(len(body) * cut)])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.date if hasattr(self, "date") else formatdate(timestamp, usegmt=True)

    def error(
        self, status: int, code: str, headers: dict[str, str] | None = None, fields: dict[str, str] | None = None
    ) -> None:
        headers = dict(headers or {})
        if "Date" in headers:
            self.date = headers.pop("Date")
        extra = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in (fields or {}).items())
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}, says the stub</Message>{extra}</Error>"
        self.answer(status, text.encode() if code else b"", None, **headers)

    def PutObject(self, call: Call, body: bytes | int, cut: float | None) -> None:
        with self.stub.lock:
            taken = call.key in self.stub.objects
            refused = taken and self.stub.conditional and call.headers.get("if-none-match") == "*"
            if not refused:
                self.store(call.key, body)
        if refused:
            self.error(412, "PreconditionFailed")
        else:
            self.answer(200, ETag='"1"')

    def store(self, key: str, body: bytes | int) -> None:
        self.stub.objects[key] = body if isinstance(body, bytes) else b""
        self.stub.sizes[key] = len(body) if isinstance(body, bytes) else body

    def GetObject(self, call: Call, body: bytes | int, cut: float | None) -> None:
        data = self.stub.objects.get(call.key)
        if data is None:
            self.error(404, "NoSuchKey")
        elif "range" in call.headers:
            first, last = map(int, call.headers["range"].removeprefix("bytes=").split("-"))
            if first >= len(data):
                self.error(416, "InvalidRange")
                return
            last = min(last, len(data) - 1)
            self.answer(206, data[first : last + 1], cut, Content_Range=f"bytes {first}-{last}/{len(data)}")
        else:
            self.answer(200, data, cut)

    def HeadObject(self, call: Call, body: bytes | int, cut: float | None) -> None:
        size = self.stub.sizes.get(call.key)
        self.answer(404) if size is None else self.answer(200, Content_Length=str(size))

    def DeleteObject(self, call: Call, body: bytes | int, cut: float | None) -> None:
        self.stub.objects.pop(call.key, None)
        self.stub.sizes.pop(call.key, None)
        self.answer(204)

    def ListObjectsV2(self, call: Call, body: bytes | int, cut: float | None) -> None:
        prefix, after = call.query.get("prefix", ""), call.query.get("continuation-token", "")
        with self.stub.lock:
            keys = sorted(key for key in self.stub.sizes if key.startswith(prefix) and key > after)
        page, more = keys[: self.stub.page], len(keys) > self.stub.page
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{self.stub.sizes[key]}</Size></Contents>" for key in page
        )
        if more:
            found += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        self.xml("ListBucketResult", f"<IsTruncated>{str(more).lower()}</IsTruncated>{found}", cut)

    def CreateMultipartUpload(self, call: Call, body: bytes | int, cut: float | None) -> None:
        upload = uuid.uuid4().hex
        with self.stub.lock:
            self.stub.uploads[upload] = (call.key, {}, time.time())
        self.xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")

    def UploadPart(self, call: Call, body: bytes | int, cut: float | None) -> None:
        with self.stub.lock:
            self.stub.uploads[call.query["uploadId"]][1][int(call.query["partNumber"])] = body
        self.answer(200, ETag=f'"{call.query["partNumber"]}"')

    def CompleteMultipartUpload(self, call: Call, body: bytes | int, cut: float | None) -> None:
        with self.stub.lock:
            _, parts, _ = self.stub.uploads.pop(call.query["uploadId"])
            bodies = [parts[number] for number in sorted(parts)]
            if self.stub.keep:
                self.store(call.key, b"".join(part for part in bodies if isinstance(part, bytes)))
            else:
                self.store(call.key, sum(part if isinstance(part, int) else len(part) for part in bodies))
        self.xml("CompleteMultipartUploadResult", '<ETag>"x"</ETag>')

    def AbortMultipartUpload(self, call: Call, body: bytes | int, cut: float | None) -> None:
        with self.stub.lock:
            self.stub.uploads.pop(call.query["uploadId"], None)
        self.answer(204)

    def ListMultipartUploads(self, call: Call, body: bytes | int, cut: float | None) -> None:
        prefix = call.query.get("prefix", "")
        with self.stub.lock:
            found = "".join(
                f"<Upload><Key>{escape(key)}</Key><UploadId>{upload}</UploadId><Initiated>"
                f"{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(begun))}</Initiated></Upload>"
                for upload, (key, _, begun) in self.stub.uploads.items()
                if key.startswith(prefix)
            )
        self.xml("ListMultipartUploadsResult", f"<IsTruncated>false</IsTruncated>{found}")

    def xml(self, root: str, inner: str, cut: float | None = None) -> None:
        text = f'<?xml version="1.0"?><{root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</{root}>'
        self.answer(200, text.encode(), cut, Content_Type="application/xml")


def open_s3(url: str = "s3://bucket/p", **options: object) -> S3Remote:
    """A remote, as a user who has set these options gets it."""
    remote = open_remote(url, Path(), S3Options(**options))  # type: ignore[arg-type]
    assert isinstance(remote, S3Remote)
    return remote


def environment(home: Path, stub: Stub | None = None) -> dict[str, str | None]:
    """Variables (None: unset) for a user who has keys of their own and nothing else, whatever the real one has."""
    variables: dict[str, str | None] = {
        "AWS_ACCESS_KEY_ID": "AKIASTUB",
        "AWS_SECRET_ACCESS_KEY": "a-secret-that-no-message-shows",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "aws-config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "aws-credentials"),
        "AWS_ENDPOINT_URL": stub.endpoint if stub else None,
    }
    others = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3",
              "AWS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy",
              "REQUESTS_CA_BUNDLE")  # fmt: skip
    return variables | dict.fromkeys(others)

"""A server on 127.0.0.1 that hands out credentials as AWS's own services do.

It is an instance's metadata service (IMDSv2), the one of a container, STS and SSO. Each asks for what the real one
asks for, and names itself in the access key it gives; `issued` counts them.
"""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import final
from urllib.parse import parse_qs, urlsplit

_ROLE = "/latest/meta-data/iam/security-credentials/"
SECRET = "an-issued-secret-that-no-message-shows"


@final
class Issuer:
    """The server; `with Issuer() as issuer` runs it. `endpoint` is where."""

    def __init__(self) -> None:
        self.issued = 0
        self.asked: list[str] = []
        #: What to answer in place of a role's credentials.
        self.page: str | None = None
        handler = type("Handler", (_Handler,), {"issuer": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Issuer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_PUT(self) -> None:
        self.answer("a session with the metadata service" if self.path == "/latest/api/token" else None)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        if parts.path.startswith(_ROLE) and self.headers["X-aws-ec2-metadata-token"]:
            self.answer(self.as_json("INSTANCE") if parts.path == _ROLE + "a-role" else "a-role")
        elif parts.path == "/container" and self.headers["Authorization"] == "a container's own word":
            self.answer(self.as_json("CONTAINER"))
        elif parts.path == "/federation/credentials" and self.headers["x-amz-sso_bearer_token"] == "logged-in":
            assert (query["role_name"], query["account_id"]) == (["a-role"], ["123456789012"])
            self.answer(self.as_sso("SSO"))
        else:
            self.answer(None)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        (action,) = form["Action"]
        if self.issuer.page is not None:
            self.answer(self.issuer.page)
        elif action == "AssumeRoleWithWebIdentity" and form["WebIdentityToken"] == ["who-i-am"]:
            self.answer(self.as_xml(action, "WEB"))
        elif action == "AssumeRole" and "Credential=AKIASOURCE/" in self.headers["Authorization"]:
            self.answer(self.as_xml(action, "ROLE"))
        else:
            error = "<Type>Sender</Type><Code>AccessDenied</Code><Message>You are nobody here</Message>"
            self.answer(f"<ErrorResponse><Error>{error}</Error></ErrorResponse>", 403)

    def answer(self, body: str | None, status: int = 200) -> None:
        self.issuer.asked.append(urlsplit(self.path).path)
        data = (body or "").encode()
        self.send_response(404 if body is None else status)
        if self.path == "/latest/api/token":
            self.send_header("X-aws-ec2-metadata-token-ttl-seconds", "21600")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def issue(self, source: str) -> tuple[str, str, datetime]:
        """An access key, its session token and when they run out."""
        self.issuer.issued += 1
        number = self.issuer.issued
        return f"ASIA{source}{number}", f"token-{number}", datetime.now(timezone.utc) + timedelta(hours=6)

    def as_json(self, source: str) -> str:
        key, token, end = self.issue(source)
        found = {"AccessKeyId": key, "SecretAccessKey": SECRET, "Token": token, "Expiration": f"{end:%Y-%m-%dT%XZ}"}
        return json.dumps({"Code": "Success", **found})

    def as_sso(self, source: str) -> str:
        key, token, end = self.issue(source)
        found = {"accessKeyId": key, "secretAccessKey": SECRET, "sessionToken": token}
        return json.dumps({"roleCredentials": {**found, "expiration": int(end.timestamp() * 1000)}})

    def as_xml(self, action: str, source: str) -> str:
        key, token, end = self.issue(source)
        return (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
            f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
            f"<SessionToken>{token}</SessionToken><Expiration>{end:%Y-%m-%dT%XZ}</Expiration>"
            f"</Credentials></{action}Result></{action}Response>"
        )

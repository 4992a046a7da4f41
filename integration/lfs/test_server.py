"""The agent as a transfer type that an LFS server chooses, instead of a standalone one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from .conftest import AGENT, LfsMachine


class Batches(BaseHTTPRequestHandler):
    """The batch API (git-lfs's docs/api/batch.md): it names the agent, and an action that the agent has no need of."""

    seen: list[dict[str, Any]]
    stored: set[str]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/objects/batch"):
            self._answer(404, {"message": "no such thing"})  # locks are verified before a push
            return
        type(self).seen.append(request)
        operation = request["operation"]
        chosen = "datasets" if "datasets" in request["transfers"] else "basic"
        objects = [self._object(operation, each) for each in request["objects"]]
        self._answer(200, {"transfer": chosen, "objects": objects, "hash_algo": "sha256"})

    def _object(self, operation: str, wanted: dict[str, Any]) -> dict[str, Any]:
        answer = {"oid": wanted["oid"], "size": wanted["size"], "authenticated": True}
        if operation == "upload" and wanted["oid"] in self.stored:
            return answer  # without an action: it is there
        self.stored.add(wanted["oid"])
        return {**answer, "actions": {operation: {"href": "https://example.invalid/x", "header": {"Key": "value"}}}}

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/vnd.git-lfs+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Batches]]]:
    class Fresh(Batches):
        seen: list[dict[str, Any]] = []  # noqa: RUF012 - one class for each test
        stored: set[str] = set()  # noqa: RUF012

    with ThreadingHTTPServer(("127.0.0.1", 0), Fresh) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", Fresh
        listening.shutdown()


def test_an_lfs_server_chooses_the_agent(lfs: LfsMachine, server: tuple[str, type[Batches]]) -> None:
    url, seen = server

    def configure(repo: Any) -> None:
        lfs.gd(repo, "uninstall")
        lfs.git(repo, "config", "lfs.url", url)
        lfs.git(repo, "config", "lfs.locksverify", "false")
        lfs.git(repo, "config", "lfs.customtransfer.datasets.path", str(AGENT))
        lfs.git(repo, "config", "lfs.customtransfer.datasets.concurrent", "true")
        lfs.git(repo, "config", "datasets.remote", str(lfs.data))

    configure(lfs.work)
    files = {f"{n}.bin": bytes([n]) * 5000 for n in range(20)} | {"large.bin": bytes(range(256)) * 4000}
    lfs.commit(files)
    lfs.git(lfs.work, "push", "-q", "-u", "origin", "main")
    assert {request["operation"] for request in seen.seen} == {"upload"}
    assert len(seen.stored) == 21
    assert lfs.packs()

    lfs.git(lfs.root, "clone", "-q", lfs.origin, "clone", env={"GIT_LFS_SKIP_SMUDGE": "1"})
    clone = lfs.root / "clone"
    configure(clone)
    lfs.lfs(clone, "pull")
    assert {name: (clone / name).read_bytes() for name in files} == files
    assert seen.seen[-1]["operation"] == "download"

    before = lfs.packs()
    lfs.lfs(lfs.work, "push", "--all", "origin")  # the server has them all and gives no action
    assert lfs.packs() == before

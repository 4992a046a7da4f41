"""Real S3 servers on 127.0.0.1, each started from an environment of its own that `.ci/run` makes.

`GIT_DATASETS_TEST_SERVERS` names the folder of those environments (`.servers` at the top of the repository by
default): `seaweedfs` with SeaweedFS, `swift` with OpenStack Swift.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SERVERS = Path(os.environ.get("GIT_DATASETS_TEST_SERVERS") or HERE.parent / ".servers")
PATIENCE = 60


@dataclass(frozen=True)
class Kind:
    """A server that can be started."""

    name: str
    program: str
    ports: tuple[int, ...]
    key: str
    secret: str

    @property
    def bin(self) -> Path:
        return SERVERS / self.name / "bin"

    @property
    def is_installed(self) -> bool:
        return (self.bin / self.program).exists()


SEAWEEDFS = Kind("seaweedfs", "weed", (0, 1, 2, 3, 4, 10000, 10001, 10002, 10003, 10004), "testkey", "testsecret")
SWIFT = Kind("swift", "swift-proxy-server", (0, 1, 2, 3), "test:tester", "testing")
KINDS = {kind.name: kind for kind in (SEAWEEDFS, SWIFT)}


@dataclass(frozen=True)
class Server:
    """One that runs. `environment` is what its user has set."""

    kind: Kind
    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.kind.key,
            "AWS_SECRET_ACCESS_KEY": self.kind.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def client(self) -> object:
        """A plain boto3 client for it."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.kind.key,
            aws_secret_access_key=self.kind.secret,
            region_name="us-east-1",
            config=Config(
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                max_pool_connections=32,
            ),
        )


@contextmanager
def running(kind: Kind, folder: Path) -> Iterator[Server]:
    """The server, with its data in a folder, until the end of the block."""
    port = free_ports(kind.ports)
    script = HERE / "s3" / f"{kind.name}.sh"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [script, kind.bin, folder, str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        server = Server(kind, f"http://127.0.0.1:{port}")
        wait_for(server, process, folder)
        yield server
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_ports(offsets: tuple[int, ...]) -> int:
    """A port that is free, like those at these distances from it; below those that the system gives away itself."""
    for base in range(12000 + os.getpid() % 500 * 20, 22700, 20):
        try:
            for offset in offsets:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", base + offset))
        except OSError:
            continue
        return base
    raise RuntimeError("no free ports")


def wait_for(server: Server, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Until it makes a bucket."""
    from botocore.exceptions import BotoCoreError, ClientError

    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            server.client().create_bucket(Bucket="ready")  # type: ignore[attr-defined]
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{server.kind.name}: {(folder / 'log').read_text()}") from error
            time.sleep(0.3)
        else:
            return

"""An upload in parts that is killed half way, on real servers: what is left of it is found and goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from s3_servers import Server

from gds_lfs.remote.s3 import S3Remote
from gds_lfs.remote.s3_multipart import THRESHOLD
from gds_lfs.remote.s3_options import S3Options, parse_url

_PUT = """
import io, os, signal, sys
from gds_lfs.remote.s3 import S3Remote
from gds_lfs.remote.s3_multipart import THRESHOLD
from gds_lfs.remote.s3_options import S3Options, parse_url

class Killing(io.BytesIO):
    parts = 0

    def read(self, size=-1):
        self.parts += 1
        if self.parts == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(size)

S3Remote(parse_url(sys.argv[1]), S3Options(endpoint=sys.argv[2])).put("x", Killing(bytes(THRESHOLD + 1)))
"""


def test_what_a_killed_upload_leaves_goes(server: Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{bucket}/some/prefix"
    command = [sys.executable, "-c", _PUT, url, server.endpoint]
    done = subprocess.run(command, check=False, timeout=120, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL

    client = server.client()
    (left,) = client.list_multipart_uploads(Bucket=bucket)["Uploads"]  # type: ignore[attr-defined]
    assert left["Key"] == "some/prefix/x"
    upload = {"Bucket": bucket, "Key": left["Key"], "UploadId": left["UploadId"]}
    assert len(client.list_parts(**upload)["Parts"]) == 2  # type: ignore[attr-defined]

    remote = S3Remote(parse_url(url), S3Options(endpoint=server.endpoint))
    remote.put("x", bytes(THRESHOLD + 1))
    assert remote.size("x") == THRESHOLD + 1
    assert len(client.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1, "it is too young"  # type: ignore[attr-defined]
    assert remote._multipart.abort_leftovers(timedelta(0)) == 1
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)  # type: ignore[attr-defined]
    assert remote.size("x") == THRESHOLD + 1

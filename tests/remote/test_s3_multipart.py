"""Uploads in parts whose process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from s3_stub import Call, Stub, open_s3

from gds_lfs.remote import s3, s3_multipart

_PUT = """
import sys
from pathlib import Path
from gds_lfs.remote import s3, s3_multipart
from gds_lfs.remote.base import open_remote
from gds_lfs.remote.s3_options import S3Options
s3.THRESHOLD, s3_multipart.PART_SIZE, s3_multipart.MIB = 1000, 300, 1
with open(sys.argv[2], "rb") as file:
    open_remote("s3://bucket/p", Path(), S3Options(endpoint=sys.argv[1])).put("x", file)
"""


def test_an_upload_that_is_killed_goes_when_it_is_old(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 2000)
    child = subprocess.Popen([sys.executable, "-c", _PUT, stub.endpoint, str(file)])

    def killed_at_part_three(call: Call) -> None:
        if call.query.get("partNumber") == "3":
            os.kill(child.pid, signal.SIGKILL)

    stub.fault = killed_at_part_three
    assert child.wait(60) == -signal.SIGKILL
    stub.fault = lambda call: None
    assert "AbortMultipartUpload" not in stub.counted(), "it had no time to"
    ((upload, (key, parts, begun)),) = stub.uploads.items()
    assert key == "p/x"
    assert {1, 2} <= set(parts) <= {1, 2, 3}

    monkeypatch.setattr(s3, "THRESHOLD", 1000)
    open_s3(endpoint=stub.endpoint).put("y", b"y" * 1001)
    assert list(stub.uploads) == [upload], "it may still be under way"
    stub.uploads[upload] = (key, parts, begun - s3_multipart.LEFTOVER_AGE.total_seconds() - 1)
    open_s3(endpoint=stub.endpoint).put("x", file.read_bytes())
    assert stub.uploads == {}
    assert stub.objects == {"p/y": b"y" * 1001, "p/x": b"x" * 2000}

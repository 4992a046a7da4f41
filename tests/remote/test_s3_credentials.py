"""Every place that boto3 looks for credentials in: what is found there signs our requests."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3_issuer import Issuer
from s3_stub import Fault, Stub, open_s3

from gds_lfs.errors import RemoteError, TransientRemoteError

_PUT = """
import sys
from pathlib import Path
from gds_lfs.remote.base import open_remote
from gds_lfs.remote.s3_options import S3Options
open_remote("s3://bucket/p", Path(), S3Options(endpoint=sys.argv[1], profile="own")).put("x", b"1")
"""


@pytest.fixture
def issuer(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """One that a user without any keys may ask."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with Issuer() as running:
        for service in ("STS", "SSO", "SSO_OIDC"):
            monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", running.endpoint)
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", running.endpoint)
        yield running


def signed(stub: Stub, key: str, token: str) -> bool:
    """Whether all requests so far were signed with this access key, and none else."""
    found = {
        (call.headers["authorization"].partition("Credential=")[2].split("/")[0], call.token) for call in stub.calls
    }
    return found == {(key, token)}


def test_the_role_of_an_instance(stub: Stub, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    remote = open_s3(endpoint=stub.endpoint)
    remote.put("x", b"1")
    assert remote.get("x") == b"1"
    assert signed(stub, "ASIAINSTANCE1", "token-1")
    assert issuer.asked[0] == "/latest/api/token"
    assert issuer.issued == 1, "asked once"


def test_the_role_of_an_instance_is_asked_anew(stub: Stub, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    stub.fault = lambda call: Fault(400, "ExpiredToken") if call.token == "token-1" else None
    open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert [call.token for call in stub.calls] == ["token-1", "token-2"]
    assert stub.objects == {"p/x": b"1"}


def test_an_instance_without_a_role(stub: Stub, issuer: Issuer) -> None:
    with pytest.raises(RemoteError, match="no credentials found"):
        open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert issuer.asked == [], "AWS_EC2_METADATA_DISABLED is heard"
    assert stub.calls == []


def test_the_role_of_a_container(stub: Stub, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer.endpoint}/container")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a container's own word")
    open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert signed(stub, "ASIACONTAINER1", "token-1")


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a token that says who the user is, for a role to be had with it."""
    file = tmp_path / "identity"
    file.write_text("who-i-am")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/a-role")
    return file


def test_a_web_identity(stub: Stub, issuer: Issuer, identity: Path) -> None:
    open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert signed(stub, "ASIAWEB1", "token-1")


def test_a_web_identity_that_nobody_believes(stub: Stub, issuer: Issuer, identity: Path) -> None:
    identity.write_text("somebody-else")
    words = r"no credentials from AssumeRoleWithWebIdentity: You are nobody here \(AccessDenied\)"
    with pytest.raises(RemoteError, match=words) as raised:
        open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert not isinstance(raised.value, TransientRemoteError)
    assert "somebody-else" not in str(raised.value)
    assert stub.calls == []


@pytest.mark.parametrize("page", ["", "<html><p>Welcome!<br></html>"])
def test_a_page_in_place_of_credentials(stub: Stub, issuer: Issuer, identity: Path, page: str) -> None:
    issuer.page = page
    with pytest.raises(RemoteError):
        open_s3(endpoint=stub.endpoint).put("x", b"1")
    assert stub.calls == []


def test_a_role_that_a_profile_assumes(stub: Stub, issuer: Issuer, tmp_path: Path) -> None:
    role = [
        "[profile own]",
        "region = eu-west-1",
        "role_arn = arn:aws:iam::123456789012:role/a-role",
        "source_profile = source",
    ]
    source = ["[profile source]", "aws_access_key_id = AKIASOURCE", "aws_secret_access_key = of-the-source"]
    (tmp_path / "aws-config").write_text("\n".join(role + source))
    open_s3(endpoint=stub.endpoint, profile="own").put("x", b"1")
    assert signed(stub, "ASIAROLE1", "token-1")


def test_a_file_of_keys(stub: Stub, issuer: Issuer, tmp_path: Path) -> None:
    keys = ["[own]", "aws_access_key_id = AKIAFILE", "aws_secret_access_key = of-the-file"]
    (tmp_path / "aws-credentials").write_text("\n".join(keys))
    open_s3(endpoint=stub.endpoint, profile="own").put("x", b"1")
    assert signed(stub, "AKIAFILE", "")


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `aws configure sso` and `aws sso login` leave: a profile, and a token below HOME."""
    session = ["[sso-session ours]", "sso_region = eu-west-1", "sso_start_url = https://ours.example/start"]
    profile = ["[profile own]", "sso_session = ours", "sso_account_id = 123456789012", "sso_role_name = a-role"]
    (tmp_path / "aws-config").write_text("\n".join(session + profile))
    cache = tmp_path / ".aws/sso/cache"
    cache.mkdir(parents=True)
    token = cache / f"{hashlib.sha1(b'ours').hexdigest()}.json"
    token.write_text(json.dumps({"accessToken": "logged-in", "expiresAt": "2099-01-01T00:00:00Z"}))
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    return token


def put_elsewhere(stub: Stub) -> subprocess.CompletedProcess[str]:
    """In a process of its own: botocore asks for HOME while it is imported."""
    command = [sys.executable, "-c", _PUT, stub.endpoint]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=dict(os.environ))


def test_single_sign_on(stub: Stub, issuer: Issuer, logged_in: Path) -> None:
    done = put_elsewhere(stub)
    assert done.returncode == 0, done.stderr
    assert signed(stub, "ASIASSO1", "token-1")


def test_single_sign_on_that_has_run_out(stub: Stub, issuer: Issuer, logged_in: Path) -> None:
    logged_in.unlink()
    done = put_elsewhere(stub)
    assert "RemoteError" in done.stderr
    assert "could not be renewed. Log in again (`aws sso login`" in done.stderr
    assert stub.calls == []

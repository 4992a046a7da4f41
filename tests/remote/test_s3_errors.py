"""What stands between the user and the server: a proxy, or words that make no request."""

from __future__ import annotations

import pytest
from s3_stub import SECRETS, Fault, Stub, open_s3

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote.base import NoSuchKeyError

SERVERS = ["http://storage.example", "https://storage.example"]


@pytest.fixture
def proxy(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """A proxy for all requests, where the user has a login."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, stub.endpoint.replace("//", "//someone:hunter2@"))
    return stub


def test_a_proxy_that_lets_everything_through(proxy: Stub) -> None:
    proxy.fault = lambda call: Fault(404, "NoSuchKey")
    with pytest.raises(NoSuchKeyError):
        open_s3(endpoint=SERVERS[0]).get("x")
    assert proxy.calls[0].headers["host"] == "storage.example"
    assert "proxy-authorization" in proxy.calls[0].headers


@pytest.mark.parametrize("server", SERVERS)
def test_a_proxy_that_does_not_know_the_login(proxy: Stub, server: str) -> None:
    proxy.fault = lambda call: Fault(407)
    with pytest.raises(RemoteError, match=r"proxy does not accept your login \(407\).*HTTPS_PROXY") as raised:
        open_s3(endpoint=server).get("x")
    assert not isinstance(raised.value, TransientRemoteError)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "words", "passes"),
    [
        (403, r"does not let you reach the server \(403\).*NO_PROXY", False),
        (405, r"does not let you reach the server \(405\)", False),
        (501, r"does not let you reach the server \(501\)", False),
        (502, r"cannot reach the server \(502\)", True),
        (503, r"cannot reach the server \(503\)", True),
        (504, r"cannot reach the server \(504\)", True),
        (429, r"cannot reach the server \(429\)", True),
    ],
)
def test_a_proxy_that_opens_no_tunnel(proxy: Stub, status: int, words: str, passes: bool) -> None:
    proxy.fault = lambda call: Fault(status)
    with pytest.raises(RemoteError, match=f"storage.example.*: the proxy {words}") as raised:
        open_s3(endpoint=SERVERS[1]).get("x")
    assert isinstance(raised.value, TransientRemoteError) is passes
    assert [call.headers["host"] for call in proxy.calls] == ["storage.example:443"]
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "address", ["http://someone:hunter2@proxy:port", "http://[::1", "http://someone:hunter2@a b:1"]
)
def test_a_proxys_address_that_is_none(user: None, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", address)
    with pytest.raises(RemoteError, match=r"address cannot be read.*HTTP_PROXY") as raised:
        open_s3(endpoint=SERVERS[0]).get("x")
    assert not isinstance(raised.value, TransientRemoteError)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
def test_a_key_with_a_line_break(stub: Stub, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "AKIASTUB\n")
    with pytest.raises(RemoteError, match=r"access key or session token.*line break") as raised:
        open_s3(endpoint=stub.endpoint).get("x")
    assert not isinstance(raised.value, TransientRemoteError)
    assert not any(secret in str(raised.value) for secret in SECRETS)
    assert stub.calls == []


def test_a_parameter_that_boto3_refuses(stub: Stub) -> None:
    connection = open_s3(endpoint=stub.endpoint)._connection
    with pytest.raises(RemoteError, match=r"cannot write x: .*parameter Key, value: 0, valid min length: 1") as raised:
        connection.call("put_object", "write x", Key="")
    assert len(str(raised.value).splitlines()) == 1
    assert stub.calls == []

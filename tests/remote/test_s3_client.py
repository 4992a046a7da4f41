"""The connections that requests share, and where in a request the bucket stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from s3_stub import Call, Fault, Stub, open_s3

from gds_lfs.errors import TransientRemoteError
from gds_lfs.remote.base import NoSuchKeyError
from gds_lfs.remote.s3 import S3Remote

ROUNDS = 4


def each_kind_of_request(remote: S3Remote, key: str) -> None:
    with pytest.raises(NoSuchKeyError):
        remote.get(key)
    for _ in range(2):  # the second is answered 412, and asks for the size
        remote.put(key, b"0123456789")
    assert remote.get(key) == b"0123456789"
    assert remote.get_range(key, 2, 3) == b"234"
    assert len(list(remote.list(key))) == 1
    remote.delete(key)


def test_one_thread_sends_all_its_requests_over_one_connection(stub: Stub) -> None:
    remote = open_s3(endpoint=stub.endpoint)
    for number in range(ROUNDS):
        each_kind_of_request(remote, f"{number}")
    assert len(stub.calls) == 8 * ROUNDS
    assert stub.connections == 1


def test_threads_have_a_connection_each_and_keep_it(stub: Stub) -> None:
    remote = open_s3(endpoint=stub.endpoint)
    all_at_once = Barrier(remote.parallel, timeout=30)

    def slowly(call: Call) -> None:
        time.sleep(0.003)  # one after the other, so that all are under way when the first is answered

    def ask(number: int) -> None:
        for turn in range(ROUNDS):
            all_at_once.wait()
            remote.put(f"{number}-{turn}", b"1")

    stub.fault = slowly
    with ThreadPoolExecutor(remote.parallel) as threads:
        list(threads.map(ask, range(remote.parallel)))
    assert len(stub.calls) == ROUNDS * remote.parallel
    assert 1 < stub.connections <= remote.parallel


def test_credentials_looked_up_anew_cost_one_more_connection(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = open_s3(endpoint=stub.endpoint)

    def expired(call: Call) -> Fault | None:
        if call.token == "old":
            monkeypatch.setenv("AWS_SESSION_TOKEN", "new")
            return Fault(400, "ExpiredToken")
        return None

    stub.fault = expired
    monkeypatch.setenv("AWS_SESSION_TOKEN", "old")
    for number in range(ROUNDS):
        remote.put(f"{number}", b"1")
    assert stub.connections == 2


@pytest.fixture
def asked(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Call]:
    """The request for an object on a server of any name: the stub stands in for all, as their proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, stub.endpoint)

    def ask(url: str, **options: object) -> Call:
        stub.fault = lambda call: None if call.operation == "Connect" else Fault(404, "NoSuchKey")
        with pytest.raises((NoSuchKeyError, TransientRemoteError)):
            open_s3(url, region="eu-west-1", **options).get("x")
        (call,) = stub.calls
        return call

    return ask


@pytest.mark.parametrize(
    ("path_style", "host", "path"),
    [
        (None, "storage.example", "/bucket/p/x"),
        (True, "storage.example", "/bucket/p/x"),
        (False, "bucket.storage.example", "/p/x"),
    ],
)
def test_where_the_bucket_stands_on_a_server_of_ones_own(
    asked: Callable[..., Call], path_style: bool | None, host: str, path: str
) -> None:
    call = asked("s3://bucket/p", endpoint="http://storage.example", path_style=path_style)
    assert call.headers["host"] == host
    assert f"/{call.bucket}/{call.key}" == path


@pytest.mark.parametrize(
    ("url", "path_style", "host"),
    [
        ("s3://bucket/p", None, "bucket.s3.eu-west-1.amazonaws.com"),
        ("s3://bucket/p", False, "bucket.s3.eu-west-1.amazonaws.com"),
        ("s3://bucket/p", True, "s3.eu-west-1.amazonaws.com"),
        ("s3://dotted.bucket/p", None, "s3.eu-west-1.amazonaws.com"),
    ],
)
def test_where_the_bucket_stands_on_aws(
    asked: Callable[..., Call], url: str, path_style: bool | None, host: str
) -> None:
    assert asked(url, path_style=path_style).headers["host"] == f"{host}:443"


@pytest.mark.parametrize("cut", [0.0, 0.2, 0.7, 0.99])
def test_a_listing_that_is_cut_off(stub: Stub, cut: float) -> None:
    remote = open_s3(endpoint=stub.endpoint)
    for number in range(3):
        remote.put(f"index/{number}", b"1")
    stub.fault = lambda call: Fault(cut=cut)
    with pytest.raises(TransientRemoteError, match="connection broke while trying to list index/"):
        list(remote.list("index/"))

"""What is wrong with a TLS connection: as servers make it, and codes that none here can bring about."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from s3_stub import Stub, open_s3

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote import tls

HERE = Path(__file__).parent


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does this with every connection once it was spoken to."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1 << 16)
                    answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def failure(endpoint: str) -> RemoteError:
    with pytest.raises(RemoteError) as raised:
        open_s3(endpoint=endpoint).get("x")
    return raised.value


def test_a_server_without_tls(user: None) -> None:
    with answering(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        error = failure(endpoint)
    assert "does not speak TLS there: does its address begin with http://" in str(error)
    assert not isinstance(error, TransientRemoteError)


def test_a_connection_that_breaks_in_the_handshake_may_go_through_later(user: None) -> None:
    with answering(lambda connection: None) as endpoint:
        error = failure(endpoint)
    assert "the connection broke" in str(error)
    assert isinstance(error, TransientRemoteError)


def test_a_certificate_of_another_name(user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = HERE / "elsewhere.pem"
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with Stub(certificate) as stub:
        error = failure(stub.endpoint)
    assert "certificate is for another name: check its address" in str(error)
    assert not isinstance(error, TransientRemoteError)


def test_authorities_that_cannot_be_read(user: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    with Stub(HERE / "loopback.pem") as stub:
        for bundle, why in ((tmp_path / "nowhere.pem", "No such file or directory"), (empty, "no certificate in it")):
            monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
            assert f"trusted authorities cannot be used ({why}): check AWS_CA_BUNDLE" in str(failure(stub.endpoint))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "not valid today: check your clock"),
        (10, "not valid today: check your clock"),
        (18, r"not trusted \(what OpenSSL says\).*AWS_CA_BUNDLE"),
        (62, "for another name"),
        (64, "for another name"),
    ],
)
def test_what_is_wrong_with_a_certificate(code: int, words: str) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "what OpenSSL says"
    assert not tls.is_passing(error)
    assert re.search(words, tls.fault(error))


def test_a_protocol_that_is_too_old() -> None:
    error = ssl.SSLError(1, "[SSL: UNSUPPORTED_PROTOCOL] unsupported protocol (_ssl.c:1006)")
    error.library, error.reason = "SSL", "UNSUPPORTED_PROTOCOL"
    assert not tls.is_passing(error)
    assert "UNSUPPORTED_PROTOCOL" in tls.fault(error)

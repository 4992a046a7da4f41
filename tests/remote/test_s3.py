"""S3 beyond the contract: what servers answer on a bad day, and what is sent to them."""

from __future__ import annotations

import io
import json
import re
import socket
import sys
import time
from datetime import timedelta
from email.utils import formatdate
from pathlib import Path

import pytest
from s3_stub import SECRETS, Call, Fault, Stub, open_s3

from gds_lfs.errors import RemoteError, TransientRemoteError
from gds_lfs.remote import s3, s3_multipart
from gds_lfs.remote.base import NoSuchKeyError, ShortBodyError, SlowDownError
from gds_lfs.remote.s3 import S3Remote


@pytest.fixture
def remote(stub: Stub) -> S3Remote:
    return open_s3(endpoint=stub.endpoint)


def message(raised: pytest.ExceptionInfo[RemoteError]) -> str:
    text = str(raised.value)
    assert not any(secret in text for secret in SECRETS)
    assert len(text.splitlines()) <= 2
    return text


# what the server answers


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "NoSuchBucket", r"no bucket 'bucket'.*git datasets link"),
        (403, "AccessDenied", r"not there, or you have no permission"),
        (400, "ExpiredToken", r"credentials have expired.*Log in again"),
        (403, "InvalidAccessKeyId", r"does not accept your credentials \(InvalidAccessKeyId\)"),
        (403, "SignatureDoesNotMatch", r"check the access key and its secret"),
        (400, "InvalidToken", r"session token"),
        (403, "InvalidObjectState", r"archive's storage class"),
        (400, "SomethingElse", r"cannot read index/x: SomethingElse, says the stub \(SomethingElse\)"),
    ],
)
def test_what_the_user_has_to_mend(stub: Stub, remote: S3Remote, status: int, code: str, words: str) -> None:
    stub.fault = lambda call: Fault(status, code)
    with pytest.raises(RemoteError, match=words) as raised:
        remote.get("index/x")
    assert not isinstance(raised.value, TransientRemoteError)
    assert "s3://bucket/p" in message(raised)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "SlowDown", SlowDownError),
        (503, "", SlowDownError),
        (429, "TooManyRequests", SlowDownError),
        (500, "InternalError", TransientRemoteError),
        (502, "", TransientRemoteError),
        (400, "RequestTimeout", TransientRemoteError),
        (409, "OperationAborted", TransientRemoteError),
    ],
)
def test_what_may_go_through_later(stub: Stub, remote: S3Remote, status: int, code: str, kind: type) -> None:
    stub.fault = lambda call: Fault(status, code)
    for request in (
        lambda: remote.get("index/x"),
        lambda: remote.put("index/x", b"1"),
        lambda: list(remote.list("index/")),
        lambda: remote.delete("index/x"),
        *([lambda: remote.size("index/x")] if status != 400 else []),  # an answer to HEAD has no body to tell
    ):
        before = len(stub.calls)
        with pytest.raises(kind):
            request()
        assert len(stub.calls) == before + 1, "trying again is the queue's business"


def test_a_head_that_is_refused_without_a_word(stub: Stub, remote: S3Remote) -> None:
    stub.fault = lambda call: Fault(400, "ExpiredToken")
    with pytest.raises(RemoteError, match=r"does not say why \(400\); perhaps your credentials have expired"):
        remote.size("x")


@pytest.mark.parametrize("status", [200, 301, 400, 401, 404, 405, 501])
@pytest.mark.parametrize("page", [b"", b"<html><body>hello</body></html>", b"<!DOCTYPE html><p>a<br>b", b"{}"])
def test_what_is_no_s3_server(stub: Stub, remote: S3Remote, status: int, page: bytes) -> None:
    stub.fault = lambda call: Fault(status, headers={"Location": "/login"}, page=page)
    with pytest.raises(RemoteError, match=r"no S3 server: check its address \(datasets\.endpoint") as raised:
        list(remote.list("index/"))
    assert not isinstance(raised.value, TransientRemoteError)
    assert stub.endpoint in message(raised)
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (lambda remote: remote.put("index/x", b"1"), "no permission to write index/x.*s3:PutObject"),
        (lambda remote: list(remote.list("index/")), "no permission to list index/.*s3:ListBucket"),
        (lambda remote: remote.delete("index/x"), "no permission to delete index/x.*s3:DeleteObject"),
        (lambda remote: remote.size("index/x"), "cannot look at index/x: it is not there, or you have no permission"),
    ],
)
def test_no_permission_names_the_right(stub: Stub, remote: S3Remote, request_: object, words: str) -> None:
    stub.fault = lambda call: Fault(403, "AccessDenied")
    assert callable(request_)
    with pytest.raises(RemoteError, match=words) as raised:
        request_(remote)
    message(raised)


def test_a_bucket_elsewhere(stub: Stub, remote: S3Remote) -> None:
    stub.fault = lambda call: Fault(
        400,
        "AuthorizationHeaderMalformed",
        fields={"Region": "eu-west-1"},
        headers={"x-amz-bucket-region": "eu-west-1"},
    )
    with pytest.raises(RemoteError, match=r"wrong region.*git config datasets\.region eu-west-1") as raised:
        remote.get("x")
    message(raised)


@pytest.mark.parametrize(("minutes", "way"), [(-37, "ahead of"), (23, "behind")])
def test_a_clock_that_is_off(stub: Stub, remote: S3Remote, minutes: int, way: str) -> None:
    date = formatdate(time.time() + minutes * 60, usegmt=True)
    stub.fault = lambda call: Fault(403, "RequestTimeTooSkewed", headers={"Date": date})
    with pytest.raises(RemoteError, match=rf"your clock is off by {abs(minutes)} min \({way} the server's\)"):
        remote.put("x", b"1")


def test_a_request_that_took_too_long_is_signed_anew(stub: Stub, remote: S3Remote) -> None:
    stub.fault = lambda call: Fault(403, "RequestTimeTooSkewed", headers={"Date": formatdate(usegmt=True)})
    with pytest.raises(TransientRemoteError, match="took too long"):
        remote.put("x", b"1")
    stub.fault = lambda call: None
    time.sleep(1.1)
    remote.put("x", b"1")
    dates = [call.headers["x-amz-date"] for call in stub.calls]
    assert dates[0] < dates[1]


@pytest.mark.parametrize("cut", [0.0, 0.83])
def test_a_body_that_is_cut_off_is_never_taken_for_whole(stub: Stub, remote: S3Remote, cut: float) -> None:
    remote.put("x", b"0123456789" * 1000)
    stub.fault = lambda call: Fault(cut=cut) if call.operation == "GetObject" else None
    with pytest.raises(TransientRemoteError, match="connection broke"):
        remote.get("x")
    with pytest.raises(TransientRemoteError, match="connection broke"):
        remote.get_range("x", 100, 5000)


def test_a_server_that_stops_answering(stub: Stub) -> None:
    remote = open_s3(endpoint=stub.endpoint, timeout=0.3)
    stub.fault = lambda call: Fault(stall=1.0)
    with pytest.raises(TransientRemoteError, match="stopped answering"):
        remote.get("x")


def test_a_server_without_conditional_puts(stub: Stub, remote: S3Remote) -> None:
    stub.fault = lambda call: Fault(501, "NotImplemented") if "if-none-match" in call.headers else None
    remote.put("x", b"first")
    remote.put("x", b"other")
    remote.put("y", io.BytesIO(b"longer"))
    assert remote.get("x") == b"first"
    assert remote.get("y") == b"longer"
    assert sum("if-none-match" in call.headers for call in stub.calls) == 1, "it is asked once"


def test_a_server_that_ignores_conditions_gets_the_same_bytes_again(stub: Stub, remote: S3Remote) -> None:
    stub.conditional = False
    remote.put("x", b"same")
    remote.put("x", b"same")
    assert remote.get("x") == b"same"


def test_an_object_of_another_size_is_mended(stub: Stub, remote: S3Remote) -> None:
    stub.objects["p/x"] = b"cut sh"
    stub.sizes["p/x"] = 6
    remote.put("x", b"cut short")
    assert remote.get("x") == b"cut short"


def test_a_server_that_ignores_ranges(stub: Stub, remote: S3Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.put("x", b"0123456789")
    connection = remote._connection
    call = connection.call

    def without_range(operation: str, doing: str, **parameters: object) -> dict[str, object]:
        parameters.pop("Range", None)
        return call(operation, doing, **parameters)

    monkeypatch.setattr(connection, "call", without_range)
    assert remote.get_range("x", 0, 10) == b"0123456789"
    with pytest.raises(RemoteError, match="ignores"):
        remote.get_range("x", 2, 3)


# credentials


def test_nothing_is_looked_up_before_the_first_request(monkeypatch: pytest.MonkeyPatch, user: None) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    open_s3(profile="nobody")


def test_no_credentials(stub: Stub, remote: S3Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteError, match=r"no credentials found.*AWS_PROFILE"):
        remote.get("x")
    assert stub.calls == []


def test_half_of_the_credentials(remote: S3Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteError, match="half of the credentials"):
        remote.get("x")


def test_no_such_profile(stub: Stub) -> None:
    with pytest.raises(RemoteError, match=r"no such profile.*datasets\.profile"):
        open_s3(endpoint=stub.endpoint, profile="nobody").get("x")


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: None) -> Path:
    """A user whose credentials come from a program that hands out the token in this file."""
    file = tmp_path / "token"
    program = tmp_path / "login.py"
    found = {"Version": 1, "AccessKeyId": "AKIASTUB", "SecretAccessKey": "a-secret-that-no-message-shows"}
    program.write_text(f"import json; print(json.dumps({found!r} | {{'SessionToken': open({str(file)!r}).read()}}))")
    (tmp_path / "aws-config").write_text(f"[default]\ncredential_process = {sys.executable} {program}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    return file


def test_a_token_that_expires_is_looked_up_anew_once(stub: Stub, remote: S3Remote, tokens: Path) -> None:
    tokens.write_text("old")

    def expired(call: Call) -> Fault | None:
        if call.token == "old" and len(stub.puts()) > 3:
            tokens.write_text("new")
            return Fault(400, "ExpiredToken")
        return None

    stub.fault = expired
    for number in range(6):
        remote.put(f"packs/{number}", io.BytesIO(b"%d" % number))
    assert [call.token for call in stub.calls] == ["old"] * 4 + ["new"] * 3
    assert remote.get("packs/3") == b"3"


def test_a_token_that_stays_expired_is_a_plain_sentence(stub: Stub, remote: S3Remote, tokens: Path) -> None:
    tokens.write_text("old")
    stub.fault = lambda call: Fault(400, "ExpiredToken")
    with pytest.raises(RemoteError, match=r"your credentials have expired\. Log in again") as raised:
        remote.get("x")
    assert not isinstance(raised.value, TransientRemoteError)
    assert len(stub.calls) == 1


def test_credentials_that_cannot_be_renewed(stub: Stub, remote: S3Remote, tokens: Path) -> None:
    with pytest.raises(RemoteError, match="could not be renewed"):  # the program fails: there is no token
        remote.get("x")


# where requests go


def test_a_bucket_with_a_dot_stays_in_the_path_for_every_verb(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "THRESHOLD", 100)
    remote = open_s3("s3://dotted.bucket/a b/ü", endpoint=stub.endpoint)
    remote.put("x", b"1")
    remote.put("large", b"l" * 101)
    assert remote.get("x") == b"1"
    assert remote.size("large") == 101
    assert [entry.key for entry in remote.list("")] == ["large", "x"]
    remote.delete("x")
    assert {call.bucket for call in stub.calls} == {"dotted.bucket"}
    assert {call.headers["host"] for call in stub.calls} == {stub.endpoint.removeprefix("http://")}
    assert len({call.operation for call in stub.calls}) == 9


def test_the_users_own_environment_names_the_server(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stub.endpoint)
    remote = open_s3()
    remote.put("x", b"1")  # the stub refuses checksums, so the server was known not to be AWS
    assert stub.objects == {"p/x": b"1"}


def test_a_profile_names_the_server(stub: Stub, tmp_path: Path) -> None:
    lines = ["[profile own]", f"endpoint_url = {stub.endpoint}", "region = garage"]
    keys = ["aws_access_key_id = AKIASTUB", "aws_secret_access_key = a-secret-that-no-message-shows"]
    (tmp_path / "aws-config").write_text("\n".join(lines + keys))
    open_s3(profile="own").put("x", b"1")
    assert "/garage/s3/" in stub.calls[0].headers["authorization"]


def test_settings_reach_the_requests(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "THRESHOLD", 100)
    remote = open_s3(endpoint=stub.endpoint, region="garage", storage_class="STANDARD_IA", kms_key="key-1")
    remote.put("x", b"1")
    remote.put("large", b"l" * 101)
    for call in stub.calls:
        assert "/garage/s3/" in call.headers["authorization"]
        if call.operation in ("PutObject", "CreateMultipartUpload"):
            assert call.headers["x-amz-storage-class"] == "STANDARD_IA"
            assert call.headers["x-amz-server-side-encryption"] == "aws:kms"
            assert call.headers["x-amz-server-side-encryption-aws-kms-key-id"] == "key-1"


def test_encryption_by_the_server(stub: Stub) -> None:
    open_s3(endpoint=stub.endpoint, encryption="AES256").put("x", b"1")
    assert stub.calls[0].headers["x-amz-server-side-encryption"] == "AES256"


def test_an_endpoint_that_nobody_listens_on(user: None) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(TransientRemoteError, match=rf"127\.0\.0\.1:{port}.*cannot be reached.*AWS_ENDPOINT_URL"):
        open_s3(endpoint=f"http://127.0.0.1:{port}").get("x")


def test_a_proxy_is_honoured_and_named(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        port = dead.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"http://someone:hunter2@127.0.0.1:{port}")
    with pytest.raises(TransientRemoteError, match=r"proxy does not answer.*HTTPS_PROXY") as raised:
        open_s3(endpoint=stub.endpoint).get("x")
    assert "hunter2" not in message(raised)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(NoSuchKeyError):
        open_s3(endpoint=stub.endpoint).get("x")


def test_an_authority_of_ones_own(user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Path(__file__).with_name("loopback.pem")
    with Stub(certificate) as stub:
        with pytest.raises(RemoteError, match=r"certificate is not trusted.*AWS_CA_BUNDLE") as raised:
            open_s3(endpoint=stub.endpoint).get("x")
        assert not isinstance(raised.value, TransientRemoteError)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        remote = open_s3(endpoint=stub.endpoint)
        remote.put("x", io.BytesIO(b"12"))
        assert remote.get("x") == b"12"


# multipart


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects above 1000 bytes go in parts of 300."""
    monkeypatch.setattr(s3, "THRESHOLD", 1000)
    monkeypatch.setattr(s3_multipart, "PART_SIZE", 300)
    monkeypatch.setattr(s3_multipart, "MIB", 1)


def test_large_objects_go_in_parts(stub: Stub, remote: S3Remote, parts: None) -> None:
    data = bytes(range(256)) * 8
    remote.put("x", io.BytesIO(data))
    assert remote.get("x") == data
    assert stub.counted()["UploadPart"] == 7
    remote.put("x", data)
    assert stub.counted() == {"HeadObject": 1}, "it is there"
    assert stub.uploads == {}


def test_an_upload_that_fails_is_aborted(stub: Stub, remote: S3Remote, parts: None) -> None:
    stub.fault = lambda call: Fault(500, "InternalError") if call.query.get("partNumber") == "3" else None
    with pytest.raises(TransientRemoteError):
        remote.put("x", b"x" * 2000)
    assert stub.uploads == {}
    assert stub.objects == {}


def test_parts_are_signed_when_they_are_sent(stub: Stub, remote: S3Remote, parts: None) -> None:
    def slow(call: Call) -> None:
        time.sleep(1.1 if call.operation == "UploadPart" else 0)

    stub.fault = slow
    remote.put("x", b"x" * 1001)
    dates = [call.headers["x-amz-date"] for call in stub.calls if call.operation == "UploadPart"]
    assert dates == sorted(set(dates)), "each later than the one before"


def test_a_token_that_expires_between_parts(stub: Stub, remote: S3Remote, parts: None, tokens: Path) -> None:
    tokens.write_text("old")

    def expired(call: Call) -> Fault | None:
        if call.token == "old" and call.query.get("partNumber") == "4":
            tokens.write_text("new")
            return Fault(400, "ExpiredToken")
        return None

    stub.fault = expired
    remote.put("x", b"x" * 2000)
    sent = [call.query["partNumber"] for call in stub.calls if call.operation == "UploadPart"]
    assert sent == ["1", "2", "3", "4", "4", "5", "6", "7"], "nothing is sent twice but what was refused"
    assert remote.size("x") == 2000


def test_what_killed_uploads_left_goes_after_two_days(stub: Stub, remote: S3Remote, parts: None) -> None:
    now = time.time()
    stub.uploads = {
        "old": ("p/packs/1", {}, now - 3 * 24 * 3600),
        "young": ("p/packs/2", {}, now - 3600),
        "another's": ("q/packs/1", {}, now - 30 * 24 * 3600),
    }
    remote.put("x", b"x" * 1001)
    assert set(stub.uploads) == {"young", "another's"}
    assert remote._multipart.abort_leftovers(timedelta(0)) == 1
    assert set(stub.uploads) == {"another's"}


def test_someone_who_may_not_list_uploads_can_push(stub: Stub, remote: S3Remote, parts: None) -> None:
    stub.fault = lambda call: Fault(403, "AccessDenied") if call.operation == "ListMultipartUploads" else None
    remote.put("x", b"x" * 1001)
    assert remote.size("x") == 1001


@pytest.mark.parametrize("size", [64 << 20, (5 << 30) + 1, 160 << 30, 5 << 40])
def test_no_object_has_too_many_parts(size: int) -> None:
    part = s3_multipart.part_size(size)
    assert -(-size // part) <= 10_000
    assert 5 << 20 <= part <= 5 << 30


def test_an_object_that_fits_no_memory_is_sent_from_its_file(user: None, tmp_path: Path) -> None:
    size = (200 << 20) + 12345
    with Stub(keep=False) as stub, (tmp_path / "sparse").open("wb+") as file:
        file.truncate(size)
        open_s3(endpoint=stub.endpoint).put("x", file)
        assert stub.sizes == {"p/x": size}
        assert [call.size for call in stub.calls if call.operation == "UploadPart"] == [16 << 20] * 12 + [8400953]


# numbers


def test_requests_are_counted(stub: Stub, remote: S3Remote) -> None:
    remote.put("x", b"1")
    with pytest.raises(NoSuchKeyError):
        remote.get("y")
    list(remote.list(""))
    assert remote.traffic == {"PutObject": 1, "GetObject": 1, "ListObjectsV2": 1}


def test_few_open_files_mean_few_requests(monkeypatch: pytest.MonkeyPatch, user: None) -> None:
    resource = pytest.importorskip("resource")
    for limit, expected in {64: 8, 49: 3, 10: 1, 100_000: 8, resource.RLIM_INFINITY: 8}.items():
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert open_s3().parallel == expected


def test_short_objects(stub: Stub, remote: S3Remote) -> None:
    remote.put("x", b"0123456789")
    with pytest.raises(ShortBodyError, match="ends at 10, not at 12"):
        remote.get_range("x", 8, 4)
    assert remote.get_range("x", 3, 0) == b""


def test_what_is_stored_is_what_was_given(stub: Stub, remote: S3Remote) -> None:
    """No chunk's length or trailing checksum of a signing scheme ends up in the object."""
    remote.put("x", io.BytesIO(b"plain"))
    assert stub.objects["p/x"] == b"plain"
    assert not [name for name in stub.calls[0].headers if re.search("checksum|trailer|decoded", name)]
    assert json.dumps(stub.calls[0].headers).count("aws-chunked") == 0

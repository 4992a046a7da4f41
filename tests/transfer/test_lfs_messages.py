from __future__ import annotations

import pytest

from gds_lfs.transfer.lfs_messages import (
    Complete,
    Download,
    Fault,
    Init,
    MalformedMessage,
    Progress,
    Ready,
    Terminate,
    Upload,
    decode_answer,
    decode_ready,
    decode_request,
    encode,
)

OID = "ab" * 32


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Ready(), b"{}\n"),
        (Ready(Fault(8, "down")), b'{"error":{"code":8,"message":"down"}}\n'),
        (Progress(OID, 10, 4), b'{"event":"progress","oid":"%s","bytesSoFar":10,"bytesSinceLast":4}\n' % OID.encode()),
        (Complete(OID), b'{"event":"complete","oid":"%s"}\n' % OID.encode()),
        (Complete(OID, "/x"), b'{"event":"complete","oid":"%s","path":"/x"}\n' % OID.encode()),
        (
            Complete(OID, error=Fault(6, "gone")),
            b'{"event":"complete","oid":"%s","error":{"code":6,"message":"gone"}}\n' % OID.encode(),
        ),
        (Terminate(), b'{"event":"terminate"}\n'),
    ],
)
def test_what_is_written(message: object, line: bytes) -> None:
    assert encode(message) == line


def test_what_git_lfs_writes_is_read() -> None:
    init = b'{"event":"init","operation":"upload","remote":"origin","concurrent":false,"concurrenttransfers":8}\n'
    assert decode_request(init) == Init("upload", "origin", False, 8)
    upload = decode_request(b'{"event":"upload","oid":"%s","size":3,"path":"/a b","action":null}\n' % OID.encode())
    assert isinstance(upload, Upload)
    assert (upload.oid, upload.size, upload.path) == (OID, 3, "/a b")
    action = b'{"href":"https://x/y","header":{"k":"v"},"expires_at":"2016-11-10T15:29:07Z"}'
    download = decode_request(b'{"event":"download","oid":"%s","size":3,"action":%s}' % (OID.encode(), action))
    assert isinstance(download, Download)
    assert decode_request(b'{"event":"terminate"}\n') == Terminate()


def test_keys_of_a_later_version_are_ignored() -> None:
    assert decode_request(b'{"event":"init","operation":"download","new":[1,{"a":2}]}') == Init("download")


def test_a_null_error_is_success() -> None:
    assert decode_ready(b'{"error":null}\n') == Ready()
    assert decode_answer(b'{"event":"complete","oid":"x","error":null,"path":"/p"}') == Complete("x", "/p")


@pytest.mark.parametrize(
    "line", [b"", b"nonsense\n", b"[]", b'{"event":"sing"}', b'{"event":"upload","oid":3}', b'{"oid":"a\xff"}', b"\xff"]
)
def test_nonsense_is_refused_with_what_it_was(line: bytes) -> None:
    with pytest.raises(MalformedMessage, match="transfer protocol"):
        decode_request(line)


def test_the_object_of_a_bad_message_is_known() -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_request(b'{"event":"upload","oid":"%s","size":"many"}' % OID.encode())
    assert caught.value.oid == OID

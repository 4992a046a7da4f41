"""Scripted sessions: what git would send, and what must come back."""

from __future__ import annotations

import io

import pytest

from gds_lfs.errors import GitError, MissingObjectError
from gds_lfs.git.filter_process import DELAYED, FilterError, Request, serve
from gds_lfs.git.pkt_line import FLUSH, MAX_PAYLOAD, PacketReader, encode


def packets(*lines: bytes) -> bytes:
    return b"".join(encode(line + b"\n") for line in lines) + FLUSH


def ask(command: bytes, path: bytes | None, content: bytes = b"", *extra: bytes) -> bytes:
    lines = [b"command=" + command, *([] if path is None else [b"pathname=" + path]), *extra]
    pieces = [content[start : start + MAX_PAYLOAD] for start in range(0, len(content), MAX_PAYLOAD)]
    return packets(*lines) + (b"" if path is None else b"".join(map(encode, pieces)) + FLUSH)


GREETING = packets(b"git-filter-client", b"version=2") + packets(
    b"capability=clean", b"capability=smudge", b"capability=delay", b"capability=time-travel"
)
GREETED = packets(b"git-filter-server", b"version=2") + packets(
    b"capability=clean", b"capability=smudge", b"capability=delay"
)
AVAILABLE = packets(b"command=list_available_blobs")
ERROR = packets(b"status=error")


def answer(content: bytes) -> bytes:
    return packets(b"status=success") + (encode(content) if content else b"") + FLUSH + FLUSH


class Handler:
    """Upper case in, lower case out; some paths misbehave."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.delayed: dict[bytes, bytes] = {}
        self.answers = 0

    def answered(self):
        self.answers += 1

    def clean(self, request, read):
        self.requests.append(request)
        if request.pathname == b"ignored":
            return b"without reading"
        if request.pathname == b"refused":
            read(3)
            raise FilterError("not this one")
        pieces = []
        while piece := read(7):
            assert len(piece) <= 7
            pieces.append(piece.upper())
        return pieces

    def smudge(self, request, content):
        self.requests.append(request)
        if request.pathname.startswith(b"half"):
            return self.half(content)
        if request.can_delay:
            self.delayed[request.pathname] = content.lower()
            return DELAYED
        if request.pathname in self.delayed:
            assert content == b""
            content = self.delayed.pop(request.pathname)
            if content == b"missing":
                raise MissingObjectError("neither here nor there")
        return content.lower()

    def half(self, content):
        yield content[:2]
        raise MissingObjectError("the rest is gone")

    def available(self):
        return list(self.delayed)


def session(*requests: bytes, handler: Handler | None = None) -> tuple[bytes, list[str]]:
    """The answers, without the greeting's, and what was reported."""
    out = io.BytesIO()
    reports: list[str] = []
    serve(io.BytesIO(GREETING + b"".join(requests)), out, handler or Handler(), reports.append)
    assert out.getvalue().startswith(GREETED)
    return out.getvalue().removeprefix(GREETED), reports


def test_clean_and_smudge():
    out, reports = session(ask(b"clean", b"a", b"hello world"), ask(b"smudge", b"a", b"HELLO"), ask(b"clean", b"e"))
    pieces = packets(b"status=success") + encode(b"HELLO W") + encode(b"ORLD") + FLUSH + FLUSH
    assert out == pieces + answer(b"hello") + answer(b"")
    assert reports == []


def test_what_a_request_says():
    handler = Handler()
    extra = (b"ref=refs/heads/x", b"treeish=" + b"1" * 40, b"blob=" + b"2" * 40, b"surprise=1", b"no-equals")
    session(ask(b"smudge", b" a=b\n%f\xff\n", b"x", *extra), handler=handler)
    assert handler.requests == [Request("smudge", b" a=b\n%f\xff\n", False, "1" * 40)]


def test_an_empty_answer_is_no_packet():
    out, _ = session(ask(b"smudge", b"a"), ask(b"smudge", b"b", b"B"))
    assert out == answer(b"") + answer(b"b")


def test_every_answer_is_followed_by_time():
    handler = Handler()
    session(ask(b"clean", b"a", b"x"), ask(b"clean", b"refused", b"x"), AVAILABLE, handler=handler)
    assert handler.answers == 3


def test_delayed_files_and_a_missing_one():
    handler = Handler()
    out, reports = session(
        *(
            ask(b"smudge", path, content, b"can-delay=1")
            for path, content in ((b"a", b"ONE"), (b"b", b"MISSING"), (b"c\nd", b"THREE"))
        ),
        AVAILABLE,
        *(ask(b"smudge", path) for path in (b"a", b"b", b"c\nd")),
        AVAILABLE,
        handler=handler,
    )
    success = packets(b"status=success")
    listed = packets(b"pathname=a", b"pathname=b", b"pathname=c\nd") + success
    assert out == packets(b"status=delayed") * 3 + listed + answer(b"one") + ERROR + answer(b"three") + FLUSH + success
    assert reports == ["b: neither here nor there"]


def test_a_refused_file_does_not_end_the_session():
    out, reports = session(ask(b"clean", b"refused", b"x" * 200_000), ask(b"clean", b"b", b"b"))
    assert out == ERROR + answer(b"B")
    assert reports == ["refused: not this one"]


def test_content_that_is_not_read_is_skipped():
    out, _ = session(ask(b"clean", b"ignored", b"x" * 200_000), ask(b"clean", b"b", b"b"))
    assert out == answer(b"without reading") + answer(b"B")


def test_failure_in_the_middle_of_the_output():
    out, reports = session(ask(b"smudge", b"half", b"abcdef"), ask(b"smudge", b"b", b"B"))
    broken = packets(b"status=success") + encode(b"ab") + FLUSH + packets(b"status=error")
    assert out == broken + answer(b"b")
    assert reports == ["half: the rest is gone"]


def test_unknown_commands():
    out, reports = session(ask(b"dance", b"a", b"content"), ask(b"sing", None), ask(b"clean", b"b", b"b"))
    assert out == ERROR + ERROR + answer(b"B")
    assert reports == [
        "a: git asked for 'dance', which this version does not know",
        "git asked for 'sing', which this version does not know",
    ]


def test_output_is_cut_into_packets():
    content = bytes(range(97, 123)) * 10_000
    out, _ = session(ask(b"smudge", b"big", content))
    packets = PacketReader(io.BytesIO(out).read)
    assert packets.lines() == [b"status=success"]
    pieces = []
    while (piece := packets.packet()) is not None:
        pieces.append(piece)
    assert b"".join(pieces) == content
    assert {len(piece) for piece in pieces[:-1]} == {MAX_PAYLOAD}
    assert packets.packet() is None
    with pytest.raises(EOFError):
        packets.packet()


def test_the_end_at_every_byte():
    """git may die at any point; nothing is then handed over as a complete content."""
    whole = GREETING + ask(b"clean", b"a", b"hello", b"ref=x") + AVAILABLE + ask(b"smudge", b"b", b"X")
    complete = len(GREETING + ask(b"clean", b"a", b"hello", b"ref=x"))

    class Cleaned(Handler):
        done = 0

        def clean(self, request, read):
            result = super().clean(request, read)
            self.done += 1
            return result

    for length in range(len(whole)):
        handler = Cleaned()
        serve(io.BytesIO(whole[:length]), io.BytesIO(), handler, lambda line: None)
        assert handler.done == (1 if length >= complete else 0)


def test_git_that_stops_listening():
    class Closed(io.BytesIO):
        def flush(self):
            raise BrokenPipeError

    serve(io.BytesIO(GREETING), Closed(), Handler())


def test_only_what_git_offers_is_agreed_on():
    out = io.BytesIO()
    greeting = packets(b"git-filter-client", b"version=2", b"version=3") + packets(b"capability=smudge")
    serve(io.BytesIO(greeting), out, Handler())
    assert out.getvalue() == packets(b"git-filter-server", b"version=2") + packets(b"capability=smudge")


@pytest.mark.parametrize("greeting", [packets(b"hello"), packets(b"git-filter-client", b"version=3"), b"rubbish\n"])
def test_a_peer_that_is_not_git(greeting):
    with pytest.raises(GitError, match="filter protocol"):
        serve(io.BytesIO(greeting), io.BytesIO(), Handler())


def test_failures_go_to_standard_error_by_default(capsys):
    serve(io.BytesIO(GREETING + ask(b"clean", b"refused", b"x")), io.BytesIO(), Handler())
    assert capsys.readouterr().err == "git datasets: refused: not this one\n"


def test_a_message_that_names_its_file_is_left_as_it_is():
    class Naming(Handler):
        def clean(self, request, read):
            raise FilterError(f"{request.pathname.decode()}: holds conflict markers")

    assert session(ask(b"clean", b"a/b", b"x"), handler=Naming())[1] == ["a/b: holds conflict markers"]

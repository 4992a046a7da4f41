from __future__ import annotations

import pytest

from gds_lfs.porcelain.messages import Messages, count, human_bytes


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2, "entry", "2 entries"),
        (2, "day", "2 days"),
        (12345, "file", "12,345 files"),
    ],
)
def test_count_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert count(number, noun) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3_500_000, "3.3 MiB"),
        (2**40, "1.0 TiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_human_bytes_uses_binary_units(size: int, text: str) -> None:
    assert human_bytes(size) == text


def test_results_and_remarks_keep_apart(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    messages = Messages()
    messages.result("a result \udcff")
    messages.note("a remark")
    out, err = capfdbinary.readouterr()
    assert out == b"a result \xff\n"
    assert err == b"git datasets: a remark\n"


def test_quiet_keeps_warnings(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    messages = Messages(quiet=True)
    messages.note("a remark")
    messages.warn("beware")
    assert capfdbinary.readouterr() == (b"", b"git datasets: warning: beware\n")


@pytest.mark.parametrize(("verbose", "shown"), [(False, [*"abc", "… and 1,997 more (-v names all)"]), (True, None)])
def test_a_result_of_many_paths_is_counted_unless_verbose(
    capfdbinary: pytest.CaptureFixture[bytes], verbose: bool, shown: list[str] | None
) -> None:
    names = [*"abc", *map(str, range(1997))]
    messages = Messages(verbose=verbose)
    messages.result_paths("here:", names, limit=3)
    messages.result_paths("three:", "abc", limit=3)
    messages.result_paths("none:", [])
    out, err = capfdbinary.readouterr()
    lines = ["here:", *(f"  {name}" for name in shown or names), "three:", "  a", "  b", "  c"]
    assert (out.decode().splitlines(), err) == (lines, b"")


def test_many_paths_are_counted_not_listed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Messages().warn_paths("too many:", (f"{i}.bin" for i in range(25)), "Do something.", limit=2)
    assert capfdbinary.readouterr().err.decode().splitlines() == [
        "git datasets: warning: too many:", "  0.bin", "  1.bin", "  … and 23 more", "Do something.",
    ]  # fmt: skip

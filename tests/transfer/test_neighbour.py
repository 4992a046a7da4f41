"""Contents of another store on this machine."""

from __future__ import annotations

import random
from pathlib import Path

from gds_lfs.content.hashing import oid_of
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.neighbour import take_over

SMALL = [b"%d" % number * 100 for number in range(30)]
LARGE = random.Random(1).randbytes(3_000_000)


def filled(folder: Path, *contents: bytes) -> LocalStore:
    store = LocalStore(folder)
    with store.writer(framed=False) as writer:
        for content in contents:
            writer.add_bytes(content)
    return store


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.pack")}


def test_what_is_there_is_copied_whole(tmp_path: Path) -> None:
    filled(tmp_path / "theirs", *SMALL, LARGE)
    before = files(tmp_path / "theirs")
    ours = LocalStore(tmp_path / "ours")
    wanted = {oid_of(content) for content in (*SMALL, LARGE, b"nowhere")}
    taken = take_over(ours, tmp_path / "theirs", wanted)
    assert taken == {oid_of(content): len(content) for content in (*SMALL, LARGE)}
    assert ours.missing(wanted) == {oid_of(b"nowhere")}
    assert ours.read(oid_of(LARGE)) == LARGE
    assert files(tmp_path / "theirs") == before
    assert take_over(ours, tmp_path / "theirs", wanted) == {}, "it is here already"


def test_no_store_at_all(tmp_path: Path) -> None:
    assert take_over(LocalStore(tmp_path / "ours"), tmp_path / "theirs", [oid_of(b"x")]) == {}
    assert list(tmp_path.iterdir()) == []


def test_what_is_damaged_there_counts_as_absent_and_stays(tmp_path: Path) -> None:
    filled(tmp_path / "theirs", LARGE)
    filled(tmp_path / "theirs", *SMALL)
    (damaged,) = (path for path in (tmp_path / "theirs").rglob("*.pack") if path.stat().st_size > 1_000_000)
    data = bytearray(damaged.read_bytes())
    data[1_500_000] ^= 1
    damaged.chmod(0o600)
    damaged.write_bytes(data)
    ours = LocalStore(tmp_path / "ours")
    taken = take_over(ours, tmp_path / "theirs", [oid_of(content) for content in (LARGE, *SMALL)])
    assert taken.keys() == {oid_of(content) for content in SMALL}
    assert ours.missing([oid_of(LARGE)])
    assert damaged.read_bytes() == data

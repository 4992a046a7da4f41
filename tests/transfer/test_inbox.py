"""Files that are handed out one by one, from stores that may be damaged, or of a session that was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gds_lfs.content.hashing import oid_of
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.inbox import Inbox
from gds_lfs.transfer.upload import upload

from .conftest import PROMPT, Clone, MemoryRemote, Watcher, noise

CONTENTS = [noise(1000, 1), noise(900_000, 2)]


@pytest.fixture
def filled(memory: MemoryRemote, clone: Clone) -> MemoryRemote:
    upload(clone.store, memory, clone.cache, clone.add(*CONTENTS), retry=PROMPT)
    memory.requests.clear()
    return memory


def inbox(remote: MemoryRemote, tmp_path: Path) -> Inbox:
    (tmp_path / "out").mkdir(exist_ok=True)
    own, session = LocalStore(tmp_path / "own"), LocalStore(tmp_path / "session")
    return Inbox(remote, tmp_path / "cache", own=own, session=session, folder=tmp_path / "out", retry=PROMPT)


def test_progress_is_told(filled: MemoryRemote, tmp_path: Path, watcher: Watcher) -> None:
    oids = [oid_of(content) for content in CONTENTS]
    inbox(filled, tmp_path).fetch(oids, watcher)
    ((what, size, _),) = watcher.totals
    assert what == "Downloading"
    assert watcher.sums[0] == size > 900_000


@pytest.mark.parametrize("store", ["own", "session"])
@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_damaged_here_is_fetched(filled: MemoryRemote, tmp_path: Path, store: str, content: bytes) -> None:
    here = LocalStore(tmp_path / store)
    with here.writer(framed=True) as writer:
        writer.add_bytes(content)
    here.close()
    (pack,) = (tmp_path / store / "packs").rglob("*.pack")
    data = bytearray(pack.read_bytes())
    data[400] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(data)
    box, oid = inbox(filled, tmp_path), oid_of(content)
    assert box.at_hand(oid)
    path = box.fetch([oid])[oid]
    assert isinstance(path, Path)
    assert path.read_bytes() == content


def test_what_two_ask_for_at_once_is_had_from_our_own_store(memory: MemoryRemote, tmp_path: Path) -> None:
    with LocalStore(tmp_path / "own").writer(framed=True) as writer:
        writer.add_bytes(CONTENTS[0])
    oid = oid_of(CONTENTS[0])
    assert isinstance(inbox(memory, tmp_path).fetch([oid, oid])[oid], Path)

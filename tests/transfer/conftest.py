"""A remote in memory that counts requests and fails on demand, and stores with known content."""

from __future__ import annotations

import hashlib
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from gds_lfs.remote.base import Entry, NoSuchKeyError, ShortBodyError, Source, open_remote
from gds_lfs.remote.draft import Spooled
from gds_lfs.store.local import LocalStore
from gds_lfs.transfer.queue import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gds_lfs.remote.base import Remote

#: Retries that take no time.
PROMPT = Retry(attempts=4, sleep=lambda _: None)


class MemoryRemote:
    """Objects in a dict. `fault` is called before each request with its name and key, and may raise."""

    parallel = 4

    def __init__(self, url: str = "memory") -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], None] = lambda name, key: None
        self.damage: Callable[[str, bytes], bytes] = lambda key, data: data
        self._lock = threading.Lock()

    def create(self) -> None:
        pass

    def put(self, key: str, source: Source) -> None:
        self._request("put", key)
        if isinstance(source, bytes):
            data = source
        else:
            source.seek(0)
            data = source.read()
        with self._lock:
            if len(self.objects.get(key, b"")) != len(data):
                self.objects[key] = data

    def draft(self, scratch: Path) -> Spooled:
        return Spooled(self, scratch)

    def get(self, key: str) -> bytes:
        self._request("get", key)
        return self.damage(key, self._object(key))

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        self._request("get_range", key)
        data = self.damage(key, self._object(key))[offset : offset + length]
        if len(data) < length:
            raise ShortBodyError(f"{key} is cut short")
        return data

    def list(self, prefix: str) -> Iterator[Entry]:
        self._request("list", prefix)
        with self._lock:
            yield from [Entry(key, len(data)) for key, data in self.objects.items() if key.startswith(prefix)]

    def size(self, key: str) -> int | None:
        self._request("size", key)
        return len(self.objects[key]) if key in self.objects else None

    def delete(self, key: str) -> None:
        self._request("delete", key)
        self.objects.pop(key, None)

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def counted(self) -> Counter[str]:
        """The requests since the last time, by name."""
        counts = Counter(name for name, _ in self.requests)
        self.requests.clear()
        return counts

    def _object(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise NoSuchKeyError(f"no {key}") from None

    def _request(self, name: str, key: str) -> None:
        self.requests.append((name, key))
        self.fault(name, key)


@dataclass
class Watcher:
    """Progress that is checked at every step."""

    totals: list[tuple[str, int, int]] = field(default_factory=list)
    sums: list[int] = field(default_factory=lambda: [0, 0])
    ended: int = 0

    def start(self, what: str, total_bytes: int, total_items: int) -> None:
        self.totals.append((what, total_bytes, total_items))
        self.sums = [0, 0]

    def advance(self, size: int, items: int) -> None:
        assert size >= 0
        assert items >= 0
        self.sums[0] += size
        self.sums[1] += items
        assert self.sums[0] <= self.totals[-1][1]
        assert self.sums[1] <= self.totals[-1][2]

    def done(self) -> None:
        self.ended += 1


class Clone:
    """A local store with a cache of its own."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root / "datasets")
        self.cache = root / "cache"

    def add(self, *contents: bytes, framed: bool = True) -> dict[bytes, str]:
        """Store contents; their ids, with paths."""
        with self.store.writer(framed=framed) as writer:
            for data in contents:
                writer.add_bytes(data)
        return named(*contents)

    def holds(self, *contents: bytes) -> bool:
        return all(self.store.read(hashlib.sha256(data).digest()) == data for data in contents)


def named(*contents: bytes) -> dict[bytes, str]:
    return {hashlib.sha256(data).digest(): f"data/{number:05}.bin" for number, data in enumerate(contents)}


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture
def memory() -> MemoryRemote:
    return MemoryRemote()


@pytest.fixture(params=["memory", "directory"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    return MemoryRemote() if request.param == "memory" else open_remote("remote", tmp_path)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "one")


@pytest.fixture
def other(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "two")


@pytest.fixture
def third(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "three")


@pytest.fixture
def prompt() -> Retry:
    return PROMPT


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def files() -> Callable[..., dict[bytes, str]]:
    return named

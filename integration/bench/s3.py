"""git datasets over S3 beside plain boto3, on the same bytes in the same run: `python integration/bench/s3.py`.

The server is a local SeaweedFS (see `integration/s3_servers.py` for where it is installed). boto3 puts and gets the
bytes as objects of 32 MiB, as many at once as we do, in a program of its own, which drops what it gets or, for
comparison, writes it to files; our commands start with what was added and committed, or with a clone that has no data.
Every repetition runs both, in changing order; figures are medians.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from s3_servers import SEAWEEDFS, Server, running

BIN = Path(sys.executable).parent
OBJECT = 32 << 20

PLAIN = """
import sys
from concurrent.futures import ThreadPoolExecutor
import boto3
from botocore.config import Config

verb, endpoint, prefix, file, count = sys.argv[1:]
keep = verb == "keep"
size = 32 << 20
client = boto3.client("s3", endpoint_url=endpoint, config=Config(max_pool_connections=8))

def put(number):
    with open(file, "rb") as data:
        data.seek(number * size)
        client.put_object(Bucket="bench", Key=f"{prefix}/{number}", Body=data.read(size))

def get(number):
    data = client.get_object(Bucket="bench", Key=f"{prefix}/{number}")["Body"].read()
    if keep:
        with open(f"{file}.{number}", "wb") as out:
            out.write(data)

with ThreadPoolExecutor(8) as threads:
    list(threads.map({"put": put}.get(verb, get), range(int(count))))
"""


class Bench:
    """One set of data: seconds by (operation, contestant)."""

    def __init__(self, root: Path, server: Server) -> None:
        self.root = root
        self.server = server
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.env = {
            **server.environment,
            "HOME": str(root),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DATASETS_SKIP_SMUDGE": "1",
            "LC_ALL": "C.UTF-8",
        }
        self.work = root / "work"
        self.all = root / "all"

    def run(self, cwd: Path, *command: str) -> str:
        done = subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def time(self, what: str, who: str, cwd: Path, *command: str) -> None:
        began = time.perf_counter()
        self.run(cwd, *command)
        self.seconds[what, who].append(time.perf_counter() - began)

    def set_up(self, contents: Iterator[bytes]) -> None:
        self.run(self.root, "git", "config", "--global", "user.name", "Bench")
        self.run(self.root, "git", "config", "--global", "user.email", "bench@example.org")
        self.run(self.root, "git", "datasets", "install")
        self.run(self.root, "git", "init", "-q", "work")
        self.run(self.work, "git", "datasets", "track", "*.dat")
        with self.all.open("wb") as together:
            for number, content in enumerate(contents):
                (self.work / f"{number:05}.dat").write_bytes(content)
                together.write(content)
        self.run(self.work, "git", "datasets", "add", ".")
        self.run(self.work, "git", "commit", "-q", "-m", "data")

    def plain(self, verb: str, turn: str) -> None:
        """The whole program's time."""
        count = -(-self.all.stat().st_size // OBJECT)
        arguments = [verb, self.server.endpoint, f"plain-{turn}", str(self.all), str(count)]
        what = {"put": "push", "get": "fetch", "keep": "fetch to files"}[verb]
        self.time(what, "boto3", self.root, sys.executable, "-c", PLAIN, *arguments)

    def ours(self, turn: str) -> None:
        """The whole commands' time."""
        clone = self.root / f"clone-{turn}"
        self.run(self.root, "git", "clone", "-q", str(self.work), clone.name)
        for folder in (self.work, clone):
            place = ("--local", "--endpoint", self.server.endpoint)
            self.run(folder, "git", "datasets", "link", f"s3://bench/ours-{turn}", *place)
        self.time("push", "git datasets", self.work, "git", "datasets", "push")
        shutil.rmtree(self.root / ".cache")  # what the push knows of the remote
        self.time("fetch", "git datasets", clone, "git", "datasets", "fetch")
        shutil.rmtree(clone)

    def measure(self, turn: str, *, ours_first: bool) -> None:
        if ours_first:
            self.ours(turn)
        self.plain("put", turn)
        self.plain("get", turn)
        self.plain("keep", turn)
        for file in self.root.glob(f"{self.all.name}.*"):
            file.unlink()
        if not ours_first:
            self.ours(turn)

    def rows(self) -> Iterator[str]:
        for what in ("push", "fetch", "fetch to files"):
            plain = statistics.median(self.seconds[what, "boto3"])
            ours = statistics.median(self.seconds[what.removesuffix(" to files"), "git datasets"])
            yield f"| {what} | {plain:.2f} | {ours:.2f} | {ours / plain:.2f} |"


def small_files(scale: float) -> Iterator[bytes]:
    noise = random.Random(1)
    return (noise.randbytes(10_000) for _ in range(int(10_000 * scale)))


def large_file(scale: float) -> Iterator[bytes]:
    noise = random.Random(2)
    yield b"".join(noise.randbytes(1 << 20) for _ in range(int(512 * scale)))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--dir", type=Path, help="where to work (default: the temporary folder)")
    options = parser.parse_args()
    if not SEAWEEDFS.is_installed:
        raise SystemExit(f"there is no SeaweedFS in {SEAWEEDFS.bin}: `bash .ci/run` installs it")
    works: dict[str, Callable[[float], Iterator[bytes]]] = {
        f"{int(10_000 * options.scale):,} files of 10,000 bytes": small_files,
        f"one file of {int(512 * options.scale)} MiB": large_file,
    }
    for title, make in works.items():
        with tempfile.TemporaryDirectory(dir=options.dir) as name:
            root = Path(name)
            (root / "server").mkdir()
            with running(SEAWEEDFS, root / "server") as server:
                server.client().create_bucket(Bucket="bench")  # type: ignore[attr-defined]
                bench = Bench(root, server)
                bench.set_up(make(options.scale))
                for turn in range(options.reps):
                    bench.measure(str(turn), ours_first=bool(turn % 2))
                print(f"\n{title}, medians of {options.reps}\n")
                print("| | boto3, 32 MiB objects | git datasets | ratio |\n|---|---|---|---|")
                print("\n".join(bench.rows()), flush=True)


if __name__ == "__main__":
    main()

"""git datasets beside plain git, on the same data in the same run: `python integration/bench`.

Every repetition runs every contestant once, in rotated order, so that a noisy machine hits all of them; a figure is the
median, and what counts is the ratio to git without a filter. Data is random, so nothing compresses. Everything
happens in a temporary folder with a HOME of its own; give `--dir` a folder in memory to leave the disk out of it.
"""

from __future__ import annotations

import argparse
import os
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

BIN = Path(sys.executable).parent
FILES, FILE_SIZE = 10_000, 10_000
LARGE = 512 * 1024 * 1024
CONTESTANTS = ("git", "filter", "add")
TITLES = {"git": "git, no filter", "filter": "git add, filtered", "add": "git datasets add"}


class Bench:
    """One set of data, measured: seconds by (operation, contestant)."""

    def __init__(self, root: Path, data: Path) -> None:
        self.root = root
        self.data = data
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.env = {
            "HOME": str(root),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, cwd: Path, *command: str) -> None:
        done = subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")

    def time(self, what: str, who: str, cwd: Path, *command: str) -> None:
        began = time.perf_counter()
        self.run(cwd, *command)
        self.seconds[what, who].append(time.perf_counter() - began)

    def set_up(self) -> None:
        settings = {
            "user.name": "Bench",
            "user.email": "bench@example.org",
            "init.defaultBranch": "main",
            "gc.auto": "0",
        }
        for key, value in settings.items():
            self.run(self.root, "git", "config", "--global", key, value)
        self.run(self.root, "git", "datasets", "install")

    def measure(self, who: str) -> None:
        """One contestant's whole life: add, status, commit, push, clone; then its folder is removed."""
        folder = self.root / "run"
        work, origin = folder / "work", folder / "origin.git"
        folder.mkdir()
        self.run(folder, "git", "init", "-q", "--bare", "origin.git")
        self.run(folder, "git", "init", "-q", "work")
        self.run(work, "git", "remote", "add", "origin", str(origin))
        shutil.copytree(self.data, work / "data")
        os.sync()
        time.sleep(1.1)  # git looks again at files of the current second, at whatever command comes next
        if who == "git":
            self.time("add", who, work, "git", "add", ".")
        else:
            self.run(work, "git", "datasets", "track", "*.dat")
            verb = ("git", "add") if who == "filter" else ("git", "datasets", "add")
            self.time("add", who, work, *verb, ".")
        self.time("status", who, work, "git", "status")
        self.time("commit", who, work, "git", "commit", "-q", "-m", "data")
        self.time("push", who, work, "git", "push", "-q", "-u", "origin", "main")
        if who == "git":
            self.time("clone", who, folder, "git", "clone", "-q", f"file://{origin}", "clone")
        else:
            self.time("clone", who, folder, "git", "clone", "-q", str(origin), "clone")
        self.check(work / "data", folder / "clone/data")
        shutil.rmtree(folder)

    @staticmethod
    def check(left: Path, right: Path) -> None:
        for file in left.iterdir():
            if file.stat().st_size != (right / file.name).stat().st_size:
                raise SystemExit(f"{file.name} came back with another size")

    def rows(self) -> Iterator[str]:
        for what in ("add", "status", "commit", "push", "clone"):
            base = statistics.median(self.seconds[what, "git"])
            for who in CONTESTANTS:
                median = statistics.median(self.seconds[what, who])
                ratio = f"{median / base:.2f}" if who != "git" else "1"
                yield f"| {what} | {TITLES[who]} | {median:.2f} | {ratio} |"


def small_files(folder: Path, scale: float) -> None:
    noise = random.Random(1)
    for number in range(int(FILES * scale)):
        (folder / f"{number:05}.dat").write_bytes(noise.randbytes(FILE_SIZE))


def large_file(folder: Path, scale: float) -> None:
    noise = random.Random(2)
    with (folder / "large.dat").open("wb") as file:
        for _ in range(int(LARGE * scale) // (1 << 20)):
            file.write(noise.randbytes(1 << 20))


def main() -> None:
    """Print one table for each set of data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--dir", type=Path, help="where to work (default: the temporary folder)")
    options = parser.parse_args()
    works: dict[str, Callable[[Path, float], None]] = {
        f"{int(FILES * options.scale):,} files of {FILE_SIZE:,} bytes": small_files,
        f"one file of {int(LARGE * options.scale) >> 20} MiB": large_file,
    }
    for title, make in works.items():
        with tempfile.TemporaryDirectory(dir=options.dir) as name:
            data = Path(name) / "data"
            data.mkdir()
            make(data, options.scale)
            bench = Bench(Path(name), data)
            bench.set_up()
            for turn in range(options.reps):
                for step in range(len(CONTESTANTS)):
                    bench.measure(CONTESTANTS[(turn + step) % len(CONTESTANTS)])
            print(f"\n{title}, medians of {options.reps}\n")
            print("| | | seconds | to git |\n|---|---|---|---|")
            print("\n".join(bench.rows()), flush=True)


if __name__ == "__main__":
    main()

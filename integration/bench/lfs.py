"""git-lfs through the agent beside git-lfs's own file:// transfer, in the same run: `python integration/bench/lfs.py`.

Each repetition pushes the same objects both ways, in turned order, so that a noisy machine hits both; figures are
medians of seconds for `git lfs push`, and the bytes that reach the remote for the next version of a large file. Data is
random. Give `--dir` a folder in memory to leave the disk out of it, `--git-lfs` another program.
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
from pathlib import Path

BIN = Path(sys.executable).parent
FILES, FILE_SIZE = 10_000, 10_000
LARGE = 512 * 1024 * 1024
INSERTIONS, INSERTED = 10, 100
WAYS = ("git-lfs file://", "git-lfs, agent")


class Bench:
    """A user with git-lfs, and one repository at a time."""

    def __init__(self, root: Path, git_lfs: str) -> None:
        self.root = root
        programs = root / "programs"
        programs.mkdir()
        (programs / "git-lfs").symlink_to(git_lfs)
        self.env = {
            "HOME": str(root),
            "PATH": f"{programs}:{BIN}:/usr/local/bin:/usr/bin:/bin",
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            "GIT_DATASETS_CACHE": str(root / "cache"),
        }
        settings = {"user.name": "Bench", "user.email": "b@example.org", "init.defaultBranch": "main", "gc.auto": "0"}
        for key, value in settings.items():
            self.run(root, "git", "config", "--global", key, value)
        self.run(root, "git", "lfs", "install", "--skip-repo")

    def run(self, cwd: Path, *command: str) -> float:
        began = time.perf_counter()
        done = subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return time.perf_counter() - began

    def repository(self, way: str) -> Path:
        """An empty repository whose objects go one of the two ways."""
        folder = self.root / "run"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(self.root / "cache", ignore_errors=True)
        folder.mkdir()
        self.run(folder, "git", "init", "-q", "--bare", "origin.git")
        self.run(folder, "git", "init", "-q", "work")
        work = folder / "work"
        self.run(work, "git", "remote", "add", "origin", str(folder / "origin.git"))
        self.run(work, "git", "lfs", "track", "*.dat")
        if way == WAYS[1]:
            self.run(work, "git", "datasets", "install", "--lfs-agent", "--remote", str(folder / "data"))
        return work

    def commit(self, work: Path) -> None:
        self.run(work, "git", "add", ".")
        self.run(work, "git", "commit", "-qm", "data")

    def push(self, work: Path) -> float:
        return self.run(work, "git", "lfs", "push", "origin", "main")

    def stored(self) -> int:
        """Bytes on the remote."""
        folders = [self.root / "run/data", self.root / "run/origin.git/lfs"]
        return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())


def small_files(bench: Bench, reps: int, scale: float) -> None:
    noise = random.Random(1)
    contents = [noise.randbytes(FILE_SIZE) for _ in range(int(FILES * scale))]
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(reps):
        for step in range(len(WAYS)):
            way = WAYS[(turn + step) % len(WAYS)]
            work = bench.repository(way)
            for number, content in enumerate(contents):
                (work / f"{number:05}.dat").write_bytes(content)
            bench.commit(work)
            os.sync()
            seconds[way].append(bench.push(work))
    base = statistics.median(seconds[WAYS[0]])
    print(f"\nPush of {len(contents):,} files of {FILE_SIZE:,} bytes to a folder, medians of {reps}\n")
    print("| | seconds | to git-lfs |\n|---|---|---|")
    for way, measured in seconds.items():
        median = statistics.median(measured)
        print(f"| {way} | {median:.2f} | {median / base:.2f} |")


def next_version(bench: Bench, scale: float) -> None:
    size = int(LARGE * scale)
    print(f"\nThe next version of {size >> 20} MiB, {INSERTED} bytes inserted at {INSERTIONS} places\n")
    print("| | bytes sent | share of the file |\n|---|---|---|")
    for way in WAYS:
        noise = random.Random(2)
        work = bench.repository(way)
        file = work / "large.dat"
        content = bytearray().join(noise.randbytes(1 << 20) for _ in range(size >> 20))
        file.write_bytes(content)
        bench.commit(work)
        bench.push(work)
        before = bench.stored()
        for place in sorted((noise.randrange(size) for _ in range(INSERTIONS)), reverse=True):
            content[place:place] = noise.randbytes(INSERTED)
        file.write_bytes(content)
        bench.commit(work)
        bench.push(work)
        sent = bench.stored() - before
        print(f"| {way} | {sent:,} | {sent / size:.2%} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--dir", type=Path, help="where to work (default: the temporary folder)")
    parser.add_argument("--git-lfs", default=shutil.which("git-lfs"), help="the git-lfs to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        bench = Bench(Path(name), os.path.abspath(options.git_lfs))
        small_files(bench, options.reps, options.scale)
        next_version(bench, options.scale)


if __name__ == "__main__":
    main()

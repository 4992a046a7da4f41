"""`git datasets demo`: the whole way on a small generated dataset, each step printed as a user would type it.

It runs plain git in a new folder with a git config of its own, so nothing of the user's is touched. The repositories
that are left know the filter themselves, so that the user can go on in them.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gds_lfs.errors import ConfigError, GitDatasetsError
from gds_lfs.git.config import environment

if TYPE_CHECKING:
    from gds_lfs.porcelain.messages import Messages

IMPORTS = "File, dataset, ingest, png"
MORE_IMPORTS = "File, dataset, ground_truth, ingest, input, metadata, png, preprocess"

INDEX = f"""\
from gds_lfs import {IMPORTS}

from shapes import draw


@dataset
class Shapes:
    image: File[png]
    label: str

    @ingest
    def draw_them():
        shapes = [(name, size) for name in ("square", "circle") for size in range(4, 30, 2)]
        return [draw(name, size) for name, size in shapes], [name for name, _ in shapes]
"""

BRIGHTNESS = """
    def bytes_used(image: File[png]) -> int:
        return len(image.read_bytes())
"""

HANDLERS = """
    @preprocess
    def split(rows):
        return {"training": rows[:20], "validation": rows[20:]}

    @input("image")
    def pixels(row):
        return read(row.image)

    @ground_truth("label")
    def is_circle(row):
        return [float(row.label == "square"), float(row.label == "circle")]

    @metadata("bytes used")
    def bytes_of(row) -> int:
        return row.bytes_used
"""

SHAPES = '''\
"""Small grey pictures, written as PNG by hand."""

import struct
import zlib

SIDE = 32


def draw(name, size):
    middle = SIDE / 2 - 0.5
    rows = []
    for y in range(SIDE):
        across, down = [abs(x - middle) for x in range(SIDE)], abs(y - middle)
        if name == "square":
            inside = [max(dx, down) <= size / 2 for dx in across]
        else:
            inside = [dx * dx + down * down <= size * size / 4 for dx in across]
        rows.append(b"\\0" + bytes(255 if white else 0 for white in inside))
    return png(b"".join(rows))


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunks


def read(file):
    data = file.read_bytes()
    rows = zlib.decompress(data[41 : 41 + struct.unpack(">I", data[33:37])[0]])
    return [[value / 255 for value in rows[start + 1 : start + SIDE + 1]] for start in range(0, len(rows), SIDE + 1)]
'''


GIT_CONFIG = "[user]\n\tname = Demo\n\temail = demo@example.org\n[init]\n\tdefaultBranch = main\n"


class _Demo:
    def __init__(self, messages: Messages, folder: Path) -> None:
        self.messages = messages
        self.folder = folder.absolute()
        self.work = self.folder / "shapes"
        self.environment = environment(
            {
                "GIT_CONFIG_GLOBAL": str(self.folder / "gitconfig"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_DATASETS_CACHE": str(self.folder / "cache"),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            }
        )

    def tell(self, text: str) -> None:
        self.messages.result(f"\n# {text}")

    def type(self, command: str, cwd: Path | None = None) -> None:
        """Print a command as at a prompt, run it, print what it says. Raises GitDatasetsError when it fails."""
        self.messages.result(f"$ {command}")
        done = subprocess.run(
            shlex.split(command), cwd=cwd or self.work, env=self.environment, capture_output=True, check=False
        )
        output = (done.stdout + done.stderr).decode(errors="replace").rstrip()
        if output:
            self.messages.result(output)
        if done.returncode:
            raise GitDatasetsError(f"the demo stopped: `{command}` ended with exit code {done.returncode}")

    def write(self, name: str, text: str) -> None:
        (self.work / name).write_text(text, encoding="utf-8")


def demo(messages: Messages, folder: Path) -> None:
    """Run it in `folder`, which must be new or empty. Raises ConfigError otherwise."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty: give the demo a new folder, `git datasets demo DIR`")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gitconfig").write_text(GIT_CONFIG)
    run = _Demo(messages, folder)

    run.tell("Once per user: teach git about datasets.")
    run.type("git datasets install", cwd=run.folder)
    run.tell("A repository, and somewhere to push it.")
    run.type("git init -q --bare -b main origin.git", cwd=run.folder)
    run.type("git init -q shapes", cwd=run.folder)
    run.type("git remote add origin ../origin.git")

    run.tell("index.py declares the dataset: a field of images, a field of text, and where its rows come from.")
    run.write("shapes.py", SHAPES)
    run.write("index.py", INDEX)
    messages.result((run.work / "index.py").read_text(encoding="utf-8"))
    run.type("git add shapes.py")
    run.type("git datasets track index.py")

    run.tell("Committing it makes the database and the images, in the same commit.")
    run.type("git commit -q -m Shapes")
    run.type("git status --short")
    run.type("git show --stat --format=%s HEAD -- index.py dataset.sqlite .gitattributes")

    run.tell("A function with a return type is one more field, computed for every row.")
    run.write("index.py", INDEX + BRIGHTNESS)
    run.type("git commit -q -m 'How many bytes each takes' index.py")

    run.tell("What a model gets of a row is declared as well. The commit looks whether it loads, and so can you.")
    text = (INDEX + BRIGHTNESS + HANDLERS).replace(IMPORTS, MORE_IMPORTS)
    run.write("index.py", text.replace("import draw", "import draw, read"))
    messages.result(HANDLERS)
    run.type("git commit -q -m 'For training' index.py")
    run.type("git datasets parse")

    run.tell("A push sends the data first (no remote is named, so it goes beside origin); a clone has all of it.")
    run.type("git push -q -u origin main")
    run.type("git clone -q origin.git elsewhere", cwd=run.folder)
    run.type("git datasets fsck", cwd=run.folder / "elsewhere")
    _compare(run)

    run.tell("Back in time, and forward again.")
    run.type("git reset -q --hard HEAD~1")
    run.type("git reset -q --hard ORIG_HEAD")
    run.type("git status --short")

    run.tell(
        "All this used a git config of its own. Yours stays as it is, so each repository learns of datasets itself."
    )
    for repository in ("shapes", "elsewhere"):
        run.type(f"git -C {repository} datasets install --local", cwd=run.folder)
    run.tell(f"Done. Look around in {run.folder}; delete it when you like.")


def _compare(run: _Demo) -> None:
    """Check the clone against the original, byte for byte. Raises GitDatasetsError when they differ."""
    left, right = _digests(run.work), _digests(run.folder / "elsewhere")
    if left != right:
        raise GitDatasetsError("the clone differs from the original: " + ", ".join(left.keys() ^ right.keys()))
    run.messages.result(f"All {len(left)} files of the clone are the original's, byte for byte.")


def _digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

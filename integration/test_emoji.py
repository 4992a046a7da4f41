"""The whole journey on data that nobody here made: Google's emoji images and the table that describes them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from machines import Machine, digests, is_clean, tree

PACKAGE = "emoji-datasource-google@16.0.0"

HEAD = """\
import json
from pathlib import Path

from gds_lfs import File, dataset, ground_truth, ingest, input, metadata, png, preprocess

PACKAGE = Path({package!r})


@dataset(remote={remote!r})
class Emoji:
    name: str
    category: str
    image: File[png]
"""

INGEST = """
    @ingest
    def from_the_package():
        table = json.loads((PACKAGE / "emoji.json").read_text())
        rows = [row for row in table if row["has_img_google"]]
        images = [PACKAGE / "img/google/64" / row["image"] for row in rows]
        return [row["name"] or row["short_name"] for row in rows], [row["category"] for row in rows], images
"""

COLOUR = '''
    def mean_colour(image: File[png]) -> str:
        """The average colour, as in a style sheet."""
        from PIL import Image

        with Image.open(image.path) as picture:
            red, green, blue, alpha = picture.convert("RGBA").resize((1, 1)).getpixel((0, 0))
        return f"#{red:02x}{green:02x}{blue:02x}"

    def thumbnail(image: File[png]) -> File[png]:
        from PIL import Image

        with Image.open(image.path) as picture:
            return picture.convert("RGBA").resize((16, 16))
'''


HANDLERS = """
    @preprocess
    def split(rows):
        faces = [row for row in rows if row.category == "Smileys & Emotion"]
        return {"training": rows[:1500], "validation": rows[1500:], "faces": faces}

    @input("image")
    def pixels(row):
        import numpy
        from PIL import Image

        with Image.open(row.image) as picture:
            return numpy.asarray(picture.convert("RGBA"), "float32") / 255

    @ground_truth("colour")
    def colour(row):
        return [int(row.mean_colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]

    @metadata("about")
    def about(row):
        return {"name": row.name, "category": row.category}
"""


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked package; a machine without npm skips what needs it, except in CI."""
    if shutil.which("npm") is None:
        if os.environ.get("CI"):
            pytest.fail("npm is needed in CI")
        pytest.skip("npm is needed to get the emoji images")
    folder = tmp_path_factory.mktemp("emoji")
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob("*.tgz")
    subprocess.run(["tar", "xzf", archive.name], cwd=folder, check=True)
    archive.unlink()
    return folder / "package"


def test_the_whole_journey_on_emoji(ready: Machine, package: Path) -> None:
    origin, repo = ready.bare(), ready.repo()
    ready.git(repo, "remote", "add", "origin", origin)
    head = HEAD.format(package=str(package), remote=str(ready.root / "data"))
    versions: list[dict[str, str]] = []

    def commit(text: str, message: str) -> None:
        (repo / "index.py").write_text(text)
        if not versions:
            ready.gd(repo, "track", "index.py")
        ready.git(repo, "commit", "-qm", message, "index.py")
        assert is_clean(ready, repo), message
        versions.append(digests(repo))

    commit(head, "declare")
    commit(head + INGEST, "ingest")
    table = json.loads((package / "emoji.json").read_text())
    shown = [row for row in table if row["has_img_google"]]
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        rows = database.execute("SELECT name, category, image FROM dataset").fetchall()
    images = {row["image"]: (package / "img/google/64" / row["image"]).read_bytes() for row in shown}
    expected = {(row["name"] or row["short_name"], row["category"], images[row["image"]]) for row in shown}
    assert {(name, category, (repo / image).read_bytes()) for name, category, image in rows} == expected
    assert len(rows) == len(expected) >= 1800

    commit(head + INGEST + COLOUR, "colours and thumbnails")
    with sqlite3.connect(repo / "dataset.sqlite") as database:
        colours = database.execute("SELECT mean_colour, thumbnail FROM dataset").fetchall()
    assert all(colour.startswith("#") and (repo / thumbnail).is_file() for colour, thumbnail in colours)
    commit(head + INGEST + COLOUR.replace("The average colour, as in a style sheet.", "As in CSS."), "a docstring")
    assert {k: v for k, v in versions[-1].items() if k != "index.py" and k != "dataset.sqlite"} == {
        k: v for k, v in versions[-2].items() if k != "index.py" and k != "dataset.sqlite"
    }
    commit(head + INGEST + COLOUR + HANDLERS, "for training")
    report = ready.gd(repo, "parse").stdout
    assert "training" in report
    assert "float32  64×64×4" in report
    assert "valid: 3 samples looked at" in report
    print(report)
    without = (head + INGEST).replace("    image: File[png]\n", "").replace(", images\n", "\n")
    commit(without, "no images")
    assert not [name for name in tree(ready, repo) if name.startswith(("image/", "thumbnail/"))]

    ready.git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert digests(repo) == versions[-2]
    assert is_clean(ready, repo)
    ready.git(repo, "push", "-q", "-u", "origin", "main")
    assert sum(file.is_file() for file in (ready.root / "data").rglob("*")) < 20

    ready.git(ready.root, "clone", "-q", "origin.git", "elsewhere")
    elsewhere = ready.root / "elsewhere"
    assert digests(elsewhere) == versions[-2]
    assert is_clean(ready, elsewhere)
    assert ready.gd(elsewhere, "fsck").returncode == 0
    for back in range(1, 4):
        ready.git(elsewhere, "checkout", "-q", f"HEAD~{1 if back > 1 else 0}")
        assert digests(elsewhere) == versions[-2 - (back - 1)]
    ready.git(elsewhere, "checkout", "-q", "main")
    assert digests(elsewhere) == versions[-2]

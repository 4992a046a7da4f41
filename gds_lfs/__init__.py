"""Machine-learning datasets in git: the names that an `index.py` imports.

They are imported here at once, cheap as they are (see `schema`), for `dataset` is also the name of a package below:
only a name that stands after the package was loaded means the decorator.
"""

from __future__ import annotations

from gds_lfs.dataset.schema import (
    File,
    any_file,
    bmp,
    csv,
    dataset,
    flac,
    gif,
    ground_truth,
    gz,
    h5,
    ingest,
    input,  # noqa: A004
    jpg,
    json,
    metadata,
    mp3,
    mp4,
    npy,
    npz,
    ogg,
    parquet,
    pdf,
    png,
    preprocess,
    safetensors,
    tiff,
    txt,
    wav,
    webp,
    zip,  # noqa: A004
)

__version__ = "0.1.0"

__all__ = [
    "File",
    "__version__",
    "any_file",
    "bmp",
    "csv",
    "dataset",
    "flac",
    "gif",
    "ground_truth",
    "gz",
    "h5",
    "ingest",
    "input",
    "jpg",
    "json",
    "metadata",
    "mp3",
    "mp4",
    "npy",
    "npz",
    "ogg",
    "parquet",
    "pdf",
    "png",
    "preprocess",
    "safetensors",
    "tiff",
    "txt",
    "wav",
    "webp",
    "zip",
]

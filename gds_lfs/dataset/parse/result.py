"""What a parse found, whole: the schema of `git datasets parse --json`.

Schema version 1, a JSON object. Fields may be added to it within a version; none is renamed or removed, and none
changes its meaning. Sizes and memory are in bytes, times in seconds, paths relative to the top of the repository (for a
Tensorleap integration: to its folder) and '/'-separated. What is not known is null.

`valid` says whether `failures` is empty; `warnings` change nothing. The stages come in their order: files, environment,
functions, rows (not for a Tensorleap integration), preprocess, samples. A `kind` of a failure or a warning is one of
`KINDS`.
"""

from __future__ import annotations

import msgspec

SCHEMA_VERSION = 1

OK, FAILED, SKIPPED = "ok", "failed", "skipped"

KINDS = {
    "missing_requirements": "there is no requirements.txt to make an environment from",
    "requirement": "a requirement cannot be installed",
    "conflict": "requirements contradict each other",
    "loader_conflict": "a requirement contradicts code-loader, which a Tensorleap integration needs",
    "wrong_python": "the code, or a package, needs another Python",
    "network": "the package index cannot be reached",
    "environment": "the environment cannot be made",
    "module_not_found": "a module is not there to be imported",
    "syntax_error": "the code is no Python",
    "declaration": "the code declares what cannot be meant",
    "exception_in_import": "the code failed when it was imported",
    "exception_in_ingest": "an ingest failed",
    "exception_in_transform": "a derived field failed",
    "exception_in_preprocess": "preprocess failed",
    "exception_in_input": "an input failed",
    "exception_in_ground_truth": "a ground truth failed",
    "exception_in_metadata": "a metadata failed",
    "exception_in_field": "a row's value cannot be read",
    "ingest_result": "an ingest or a derived field gave what its fields cannot take",
    "preprocess_result": "preprocess gave no splits",
    "integration_test": "the integration test cannot be wired to a model",
    "file_not_found": "a file or folder is nowhere",
    "file_not_in_commit": "a file is on this machine, but not in the commit",
    "file_not_included": "a file is in the commit, but left out by include and exclude",
    "file_not_fetched": "a file's data is not on this machine",
    "file_outside": "a file outside the repository, so absent elsewhere",
    "permission": "the system refuses access to a file",
    "outside_volumes": "a path outside the allowed volumes",
    "out_of_memory": "more memory than there is, or than is allowed",
    "killed": "the process was killed",
    "crashed": "the process was ended by a signal of its own making",
    "hang": "no answer for too long",
    "exit_called": "the code ended its process",
    "none_value": "a value is None",
    "nan_value": "a value holds NaN",
    "infinite_value": "a value holds infinity",
    "shape_changes": "a shape differs between samples",
    "dtype_changes": "a dtype differs between samples",
    "wrong_type": "a value has another type than it is to have",
    "repeated_id": "a split has a sample twice",
    "shared_id": "two splits have a sample in common",
    "unhashable_id": "the id of a sample cannot be told from others",
    "empty_split": "a split without samples",
    "changed_file": "a handler changed the file of a row",
    "pattern": "a pattern that matches no file",
    "no_rows": "there is no row yet, so no sample was checked",
}


class Stage(msgspec.Struct, omit_defaults=False):
    """One step: `status` is `ok`, `failed` or `skipped`, then `because` names the stage that failed.

    `output` is the end of what was printed meanwhile, by Python, logging or C, of `output_size` bytes in all.
    """

    name: str
    status: str = SKIPPED
    because: str | None = None
    seconds: float = 0.0
    peak_memory: int | None = None
    summary: str = ""
    output: str = ""
    output_size: int = 0


class File(msgspec.Struct):
    """A file that goes along. `fetched` is false where its data is not on this machine."""

    path: str
    size: int
    fetched: bool = True


class Function(msgspec.Struct):
    """What is registered. `kind`: field, ingest, transform, preprocess, input, ground_truth, metadata, or another."""

    kind: str
    name: str
    where: str
    declared: str = ""


class Rows(msgspec.Struct):
    """The rows that were looked at. `complete` is false where only the first of the new ones were taken."""

    count: int
    added: int = 0
    completed: int = 0
    complete: bool = True
    ingests: list[str] = []
    computed: dict[str, int] = {}


class Split(msgspec.Struct):
    """A part of the samples. `without` are kinds of function that have nothing to say of them."""

    name: str
    length: int
    without: list[str] = []


class Value(msgspec.Struct):
    """What a value looks like. `items` are those of a dict, `problem` says why it is no value."""

    type: str
    dtype: str | None = None
    shape: list[int] | None = None
    min: int | float | None = None
    max: int | float | None = None
    nan: int = 0
    infinite: int = 0
    text: str | None = None
    items: dict[str, Value] | None = None
    problem: str | None = None


class Sample(msgspec.Struct):
    """What one handler gave for one sample, at a position of a split; `value` is null where it failed."""

    kind: str
    name: str
    split: str
    position: int
    id: str
    value: Value | None = None
    seconds: float = 0.0


class Finding(msgspec.Struct):
    """A failure or a warning: its kind, in words, at the innermost line of the user's own code, and what to do.

    `function` is the kind and name of what ran, `detail` more lines about it, `trace` the own lines that led there.
    """

    kind: str
    stage: str
    text: str
    advice: str
    where: str | None = None
    function: str | None = None
    split: str | None = None
    sample: str | None = None
    detail: str = ""
    trace: list[str] = []


class Result(msgspec.Struct):
    """The whole. `rev` is the commit that was asked for, null for what is staged; `entry` the file with the code."""

    entry: str
    rev: str | None = None
    schema: int = SCHEMA_VERSION
    git_datasets: str = ""
    python: str = ""
    valid: bool = False
    seconds: float = 0.0
    stages: list[Stage] = []
    files: list[File] = []
    functions: list[Function] = []
    rows: Rows | None = None
    splits: list[Split] = []
    samples: list[Sample] = []
    failures: list[Finding] = []
    warnings: list[Finding] = []
    notes: list[str] = []
    """Lines of others, such as the verdict of code-loader's own check."""


def to_json(result: Result) -> bytes:
    """The JSON text."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2)

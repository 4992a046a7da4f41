"""A parse for people: readable at a glance, with what failed and what to do at the end.

Plain text, one line for a stage. Long lists are cut unless `verbose`; `--json` has everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gds_lfs.dataset.parse.advice import size_text
from gds_lfs.dataset.parse.checks import shape_text
from gds_lfs.dataset.parse.engine import counted
from gds_lfs.dataset.parse.result import FAILED, OK, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gds_lfs.dataset.parse.result import Finding, Result, Sample, Stage, Value

_MARKS = {OK: "✓", FAILED: "✗", SKIPPED: "–"}
_FEW = 5
_OUTPUT_LINES = 6
_WIDEST = 110


def report(result: Result, *, verbose: bool = False) -> list[str]:
    """The whole report, line by line."""
    lines = [f"{result.entry}{'' if result.rev is None else f' at {result.rev}'}", ""]
    for stage in result.stages:
        lines.append(_stage_line(stage))
        lines += _stage_detail(stage, result, verbose=verbose)
    for title, findings in (("Warnings", result.warnings), ("Failures", result.failures)):
        lines += ["", f"{title}:"] if findings else []
        for finding in findings:
            lines += finding_lines(finding, "✗" if findings is result.failures else "!")
    lines += ["", *result.notes] if result.notes else []
    lines += ["", summary(result)]
    return lines


def summary(result: Result) -> str:
    """One line: whether it is valid, and what was looked at."""
    warnings = f", {counted(len(result.warnings), 'warning')}" if result.warnings else ""
    if not result.valid:
        skipped = [stage.name for stage in result.stages if stage.status == SKIPPED]
        more = f"; skipped: {', '.join(skipped)}" if skipped else ""
        return f"not valid: {counted(len(result.failures), 'failure')}{warnings}{more} ({result.seconds:.1f} s)"
    samples = len({(sample.split, sample.position) for sample in result.samples})
    return f"valid: {counted(samples, 'sample')} looked at{warnings} ({result.seconds:.1f} s)"


def finding_lines(finding: Finding, mark: str = "✗") -> list[str]:
    """A failure or a warning: where and what, while doing what, and what to do."""
    first, *more = finding.text.splitlines() or [""]
    doing = [finding.function or ""]
    doing += [f"split {finding.split}"] if finding.split else []
    doing += (
        [f"sample {finding.sample}" if not finding.sample.startswith("row ") else finding.sample]
        if finding.sample
        else []
    )
    lines = [f"  {mark} {f'{finding.where}: ' if finding.where else ''}{first}"]
    lines += [f"    {line}" for line in more]
    said = ", ".join(part for part in doing if part)
    lines += [f"    in {said}"] if said else []
    lines += [f"    | {line}" for line in finding.detail.splitlines()[:12]]
    lines += [f"    → {line}" for line in finding.advice.splitlines()]
    return lines


def output_lines(stage: Stage, *, verbose: bool = False) -> list[str]:
    """What was printed during a stage, the end of it unless `verbose`."""
    lines = stage.output.rstrip().splitlines()
    shown = lines if verbose else lines[-_OUTPUT_LINES:]
    more = [f"    | … {len(lines) - len(shown):,} lines before; -v shows them"] if len(shown) < len(lines) else []
    return [*more, *(f"    | {line}" for line in shown)]


def _stage_line(stage: Stage) -> str:
    if stage.status == SKIPPED:
        return f"{_MARKS[SKIPPED]} {stage.name:<12} skipped: {stage.because} failed"
    memory = size_text(stage.peak_memory) if stage.peak_memory else ""
    told = stage.summary if stage.status == OK else stage.summary or "failed"
    return f"{_MARKS[stage.status]} {stage.name:<12} {stage.seconds:>6.2f} s {memory:>9}  {told}".rstrip()


def _stage_detail(stage: Stage, result: Result, *, verbose: bool) -> Iterator[str]:
    if stage.name == "files":
        yield from _files(result, verbose=verbose)
    elif stage.name == "functions":
        yield from _functions(result, verbose=verbose)
    elif stage.name == "samples":
        yield from _samples(result.samples, verbose=verbose)
    yield from output_lines(stage, verbose=verbose)


def _files(result: Result, *, verbose: bool) -> Iterator[str]:
    largest = sorted(result.files, key=lambda file: -file.size)
    shown = result.files if verbose else largest[:_FEW]
    rows = [(file.path, size_text(file.size), "" if file.fetched else "not fetched") for file in shown]
    yield from _table(rows)
    if len(shown) < len(result.files):
        rest = sum(file.size for file in largest[_FEW:])
        yield f"    and {len(result.files) - len(shown):,} smaller, {size_text(rest)}; -v lists them all"


def _functions(result: Result, *, verbose: bool) -> Iterator[str]:
    many = len(result.functions) > 4 * _FEW and not verbose
    shown = [each for each in result.functions if not many or each.kind not in ("field", "transform")]
    yield from _table([(each.kind.replace("_", " "), each.name, each.declared, each.where) for each in shown])
    if len(shown) < len(result.functions):
        yield f"    and {len(result.functions) - len(shown):,} fields; -v lists them all"


def _samples(samples: Sequence[Sample], *, verbose: bool) -> Iterator[str]:
    rows = []
    for sample in samples if verbose or len(samples) <= 8 * _FEW else samples[: 8 * _FEW]:
        name = f"{sample.kind.replace('_', ' ')} {sample.name}"
        cells = ("failed",) if sample.value is None else _value(sample.value)
        rows.append((sample.split, _cut(sample.id, 12), name, *cells))
    yield from _table(rows)
    if len(rows) < len(samples):
        yield f"    and {len(samples) - len(rows):,} values; -v lists them all"


def _value(value: Value) -> tuple[str, ...]:
    if value.items is not None:
        parts = [f"{name}={' '.join(_value(each)[2:])}" for name, each in value.items.items()]
        return ("dict", f"{len(value.items)}", _cut(", ".join(parts), 50))
    return (value.dtype or value.type, shape_text(value.shape) if value.shape is not None else "", _range(value))


def _range(value: Value) -> str:
    if value.problem is not None:
        return value.problem
    if value.text is not None:
        return _cut(value.text, 40)
    if value.min is None or value.max is None:
        return "NaN" if value.nan else ""
    if not value.shape:
        return _number(value.min)
    return f"{_number(value.min)} … {_number(value.max)}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Rows with their columns aligned."""
    listed = list(rows)
    widths: list[int] = []
    for row in listed:
        widths += [0] * (len(row) - len(widths))
        widths = [max(width, len(cell)) for width, cell in zip(widths, [*row, *[""] * len(widths)], strict=False)]
    for row in listed:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        yield f"    {_cut(line, _WIDEST)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"

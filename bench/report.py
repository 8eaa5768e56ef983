"""Showing what was measured: the table, the JSON file, the comparison with an earlier one."""

from __future__ import annotations

import json
import platform
import resource
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

import hiboss

from .figures import AT_MOST, Figure, Ratio, show
from .load import ROOT

FORMAT = 1
QUIET = 0.1  # others may take this share of the machine


def machine(directory: Path) -> dict[str, Any]:
    """What the figures depend on."""
    places = sorted(psutil.disk_partitions(all=True), key=lambda place: len(place.mountpoint))
    mounts = [place.fstype for place in places if directory.is_relative_to(place.mountpoint)]
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "filesystem": mounts[-1] if mounts else "unknown",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def commit() -> str:
    """The commit measured, with a + when files were changed since."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def document(facts: dict[str, Any], options: dict[str, Any], **found: Any) -> dict[str, Any]:
    """The content of the JSON file; `found` is what was measured."""
    return {
        "format": FORMAT,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": hiboss.__version__,
        "commit": commit(),
        "machine": facts,
        "options": options,
        **found,
    }


def load(path: Path) -> dict[str, Any]:
    """An earlier document; raises ValueError with advice when it is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        if found["format"] != FORMAT or not found["figures"]:
            raise ValueError(f"{path} has format {found['format']}, this is {FORMAT}: measure anew")
        return found
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{path} was not written by `python -m bench --json`") from None


class Neighbours:
    """What others take of the machine from now on: it decides what the figures are worth."""

    def __init__(self) -> None:
        self._begin = perf_counter()
        self._busy = _busy()
        self._ours = _ours()

    def share(self) -> float:
        """0.25: a quarter of all cores. Our children count as ours once they have ended."""
        capacity = (perf_counter() - self._begin) * (psutil.cpu_count() or 1)
        taken = (_busy() - self._busy) - (_ours() - self._ours)
        return round(max(0.0, taken) / capacity, 3)


def _busy() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # already in user and nice
    return float(sum(times) - idle - guests)


def _ours() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


COLUMNS = ("work", "now", "p50 ms", "p99 ms", "floor", "aim", "", "was")


def table(figures: list[Figure], earlier: dict[str, Any] | None) -> str:
    """A line for each figure and each of its ratios: now, floor, aim, and the change since `earlier`."""
    before = earlier["figures"] if earlier else {}
    lines: list[tuple[str, ...]] = [COLUMNS if earlier else (*COLUMNS[:-1], "")]
    for figure in figures:
        old = before.get(figure.key, {})
        lines.append(
            (
                figure.work,
                show(figure.value, figure.unit),
                _number(figure.p50),
                _number(figure.p99),
                "" if figure.at_most is None else f"{AT_MOST} {show(figure.at_most, figure.unit)}",
                figure.goal,
                figure.verdict,
                _change(figure.value, old.get("value"), figure.unit),
            )
        )
        for one in figure.ratios:
            was = old.get("ratios", {}).get(one.key, {}).get("value")
            lines.append((f"    {one.of}", *_marks(one), _change(one.value, was, "")))
    return aligned(lines, to_the_left={0, 6})


def _marks(one: Ratio) -> tuple[str, str, str, str, str, str]:
    floor = "" if one.floor is None else f"{one.sense} {one.floor:.3g}"
    aim = "" if one.aim is None else f"{one.sense} {one.aim:.3g}"
    return (f"{one.value:.2f}", "", "", floor, aim, one.verdict)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _change(value: float, was: float | None, unit: str) -> str:
    if not was:
        return ""
    shown = show(was, unit) if unit else f"{was:.2f}"
    return f"{shown} ({(value / was - 1) * 100:+.0f} %)"


def aligned(lines: list[tuple[str, ...]], to_the_left: set[int]) -> str:
    """Columns; those of words are to the left, all others are numbers."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    shown = []
    for line in lines:
        cells = [
            cell.ljust(width) if column in to_the_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  ".join(cells).rstrip())
    shown.insert(1, "-" * max(map(len, shown)))
    return "\n".join(shown)


def heading(found: dict[str, Any], noise: str) -> str:
    """`noise`: what it means when others used the machine too."""
    facts = found["machine"]
    warning = ""
    if facts["others_cpu"] > QUIET:
        warning = f"\nNot a quiet machine: {noise}"
    return (
        f"hiboss {found['version']} at {found['commit']}, {found['date']}\n"
        f"{facts['cores']} cores ({facts['processor']}), {facts['memory_gb']} GB, {facts['filesystem']}, "
        f"Python {facts['python']}, SQLite {facts['sqlite']}, "
        f"{facts['others_cpu']:.0%} of the machine was taken by others meanwhile{warning}"
    )


def comparison(found: dict[str, Any], earlier: dict[str, Any]) -> str:
    """What the column `was` is about, and why it may not be comparable."""
    line = f"was: {earlier['version']} at {earlier['commit']}, {earlier['date']}"
    if found["options"] != earlier["options"]:
        line += "; with other options"
    if any(
        found["machine"][fact] != earlier["machine"][fact] for fact in ("processor", "cores", "filesystem")
    ):
        line += "; on another machine, so only ratios compare"
    return line

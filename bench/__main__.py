"""`python -m bench`: the options, and the order of the work.

Exit status 1 when a floor is missed or, with `--beside TREE`, when a row is worse.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import beside, parts, redis_server, report, verdicts
from .figures import Figure, misses, on_a_busy_machine
from .rounds import Size

REDIS = "redis"
WIDE = "intervals are wide, and a small difference does not show."
DOUBTFUL = "rates are doubtful and not counted, CPU times are."


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure hiboss, as ratios within one run: sends, tokens, starts and memory, lists, the "
        "CLI, mailboxes, deferred mail, delivery, waiting, following, turns of agents and of Claude Code, "
        "Telegram, stops, the breaker, HTTP, and MCP.",
        epilog=verdicts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="envelopes in the large stores (default 1,000,000, and 100,000 with --beside); "
        "of mailboxes at least 100,000",
    )
    parser.add_argument(
        "--rounds", type=int, help=f"medians count (default {verdicts.ROUNDS}, the least for a verdict)"
    )
    parser.add_argument("--seconds", type=float, help="length of one slice of sends (default 0.3)")
    parser.add_argument("--quick", action="store_true", help="small and short: 3 rounds, no verdict")
    parser.add_argument(
        "--only", action="append", choices=list(parts.PARTS), help="measure this part; may be repeated"
    )
    parser.add_argument(
        "--beside",
        metavar="redis|DIRECTORY",
        help="measure all parts in turns with another checkout of hiboss, and say of each row whether it is "
        "better, equal or worse here; or sends in turns with redis-server",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="show the change against this earlier JSON"
    )
    parser.add_argument("--dir", type=Path, help="where to put the homes (default: the temporary directory)")
    given = parser.parse_args()
    rows = 100_000 if given.beside else 1_000_000
    for name, usual, quick in (
        ("rows", rows, 20_000),
        ("rounds", verdicts.ROUNDS, 3),
        ("seconds", 0.3, 0.15),
    ):
        if getattr(given, name) is None:
            setattr(given, name, quick if given.quick else usual)
        elif getattr(given, name) <= 0:
            parser.error(f"--{name} must be more than 0")
    if given.rows < 100:
        parser.error("--rows must be at least 100")
    if given.beside == REDIS and not redis_server.installed():
        parser.error(redis_server.ADVICE)
    if given.beside not in (None, REDIS) and not beside.is_checkout(Path(given.beside)):
        parser.error(f"--beside: {given.beside} is neither the word redis nor a checkout of hiboss")
    if given.compare and given.beside:
        parser.error("--compare is for runs without --beside, which compares within one run")
    if given.json and not given.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no directory {given.json.absolute().parent}")
    return given


def main() -> int:
    given = arguments()
    os.environ["HIBOSS_WEB_ENABLED"] = "off"  # who wants it switches it on; the others have no port
    try:
        earlier: dict[str, Any] | None = report.load(given.compare) if given.compare else None
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    names = ("rows", "rounds", "seconds", "quick", "only", "beside")
    options = {name: getattr(given, name) for name in names}
    is_tree = given.beside not in (None, REDIS)
    size = Size(rows=given.rows, rounds=given.rounds, seconds=given.seconds, beside=is_tree)
    chosen = given.only or list(parts.PARTS)
    rows: list[beside.Row] = []
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="hiboss-bench-", dir=given.dir) as path:
        directory = Path(path)
        facts = report.machine(directory.resolve())
        neighbours = report.Neighbours()
        if is_tree:
            rows = beside.measure(directory, Path(given.beside), chosen, size)
        else:
            if given.beside:
                figures = redis_server.measure(directory / REDIS, size)
            for part in given.only or ([] if given.beside else chosen):
                figures += parts.measure(part, directory, size)
        facts["others_cpu"] = neighbours.share()
    if is_tree:
        found = report.document(facts, options, rows={row.key: row._asdict() for row in rows})
    else:
        if facts["others_cpu"] > report.QUIET:
            figures = on_a_busy_machine(figures)
        found = report.document(facts, options, figures={one.key: one.facts() for one in figures})
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    noise = WIDE if is_tree else DOUBTFUL
    print(report.heading(found, noise))
    if is_tree:
        return _said_beside(rows)
    if earlier:
        print(report.comparison(found, earlier))
    print(f"\n{report.table(figures, earlier)}\n")
    missed = misses(figures)
    print("\n".join(f"MISSED {sentence}" for sentence in missed) or "All floors are reached.")
    return 1 if missed else 0


def _said_beside(rows: list[beside.Row]) -> int:
    print(f"\n{beside.table(rows)}\n")
    print(beside.summary(rows))
    worse = [row for row in rows if row.word == verdicts.WORSE]
    for row in worse:
        print(f"WORSE {row.work}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench`: the options, and the order of the work. Exit status 1 when a floor is missed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import (
    beside,
    breaker,
    callers,
    claude_turns,
    command,
    deferred,
    delivery,
    followers,
    hooks,
    life,
    mailboxes,
    mcp,
    reads,
    redis_server,
    report,
    sends,
    stops,
    telegram,
    telegram_out,
    trees,
    turns,
    waiters,
    web,
)
from .figures import Figure, misses, on_a_busy_machine
from .homes import full_home, say
from .neighbours import Neighbours

SMALL = 1_000  # rows of the small store that the large one is compared with
PARTS = (
    "sends",
    "callers",
    "boxes",
    "mailboxes",
    "deferred",
    "delivery",
    "waiters",
    "followers",
    "turns",
    "claude_turns",
    "telegram",
    "telegram_out",
    "stops",
    "breaker",
    "hooks",
    "web",
    "mcp",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure hiboss, as ratios within one run: sends, tokens, lists, polls, CLI, start, "
        "memory, mailboxes, threads and groups, deferred mail, delivery, waiting, following, turns of agents "
        "and of Claude Code, a Telegram bot, its posts and stops, the breaker, HTTP, and MCP.",
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="envelopes in the large stores (default 1,000,000); of mailboxes at least 100,000",
    )
    parser.add_argument("--rounds", type=int, help="rounds of sends and starts; medians count (default 9)")
    parser.add_argument("--seconds", type=float, help="length of one round of sends (default 0.8)")
    parser.add_argument("--quick", action="store_true", help="small and short, two minutes")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; may be repeated")
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="redis|DIRECTORY",
        help="measure sends in turns with redis-server, or with another checkout of hiboss; may be repeated. "
        "Nothing else is measured then, but what --only names",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="show the change against this earlier JSON"
    )
    parser.add_argument("--dir", type=Path, help="where to put the homes (default: the temporary directory)")
    given = parser.parse_args()
    for name, usual, quick in (("rows", 1_000_000, 20_000), ("rounds", 9, 3), ("seconds", 0.8, 0.5)):
        if getattr(given, name) is None:
            setattr(given, name, quick if given.quick else usual)
        elif getattr(given, name) <= 0:
            parser.error(f"--{name} must be more than 0")
    if given.rows < 100:
        parser.error("--rows must be at least 100")
    for other in given.beside:
        if other != beside.REDIS and not trees.is_checkout(Path(other)):
            parser.error(f"--beside: {other} is neither the word redis nor a checkout of hiboss")
    if beside.REDIS in given.beside and not redis_server.installed():
        parser.error(redis_server.ADVICE)
    if given.json and not given.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no directory {given.json.absolute().parent}")
    return given


def measure(directory: Path, given: argparse.Namespace) -> list[Figure]:
    quick, rounds, seconds = given.quick, given.rounds, given.seconds
    few = min(rounds, 5)
    parts: dict[str, Callable[[], list[Figure]]] = {
        "sends": lambda: sends.measure(directory, rounds, seconds),
        "callers": lambda: callers.measure(directory, rounds),
        "boxes": lambda: measure_boxes(directory, given),
        "mailboxes": lambda: mailboxes.measure(
            directory, max(given.rows, 10 * mailboxes.SMALL), 1.0 if quick else 3.0
        ),
        "deferred": lambda: deferred.measure(directory, (given.rows, SMALL), rounds, seconds),
        "delivery": lambda: delivery.measure(directory, few, seconds, 2_000 if quick else 10_000),
        "waiters": lambda: waiters.measure(directory, *((100, 3.0) if quick else (400, 10.0))),
        "followers": lambda: followers.measure(directory, rounds, seconds),
        "turns": lambda: turns.measure(directory, few, 40 if quick else 200),
        "claude_turns": lambda: claude_turns.measure(directory, 10 if quick else 30),
        "telegram": lambda: telegram.measure(directory, 20 if quick else 60),
        "telegram_out": lambda: telegram_out.measure(directory, 200 if quick else 1_000),
        "stops": lambda: stops.measure(directory, 1 if quick else 3),
        "breaker": lambda: breaker.measure(directory, 1 if quick else 3),
        "hooks": lambda: hooks.measure(directory, 10 if quick else 25),
        "web": lambda: web.measure(directory, few, seconds, 200 if quick else 1_000),
        "mcp": lambda: mcp.measure(directory, 100 if quick else 500, 10 if quick else 25),
    }
    chosen = given.only or ([] if given.beside else PARTS)
    figures = [figure for part in chosen for figure in parts[part]()]
    if given.beside:
        figures += beside.measure(directory / "beside", given.beside, rounds, seconds)
    return figures


def measure_boxes(directory: Path, given: argparse.Namespace) -> list[Figure]:
    """Full inboxes: the daemon at rest, looking into them, the CLI."""
    sizes = (given.rows, SMALL)
    say(f"writing {2 * given.rows:,} envelopes to look through")
    large, small = full_home(directory / "large", given.rows), full_home(directory / "small", SMALL)
    try:
        rests = life.measure(large, small, sizes, given.rounds)
        figures = reads.measure(large, small, sizes, seconds=1.5 if given.quick else 4.0)
        figures += command.measure(small, runs=15 if given.quick else 25)
    finally:
        large.stop()
        small.stop()
    return figures + rests


def main() -> int:
    given = arguments()
    os.environ["HIBOSS_WEB_ENABLED"] = (
        "off"  # the part `web` switches it on; the others have no port of their own
    )
    try:
        earlier: dict[str, Any] | None = report.load(given.compare) if given.compare else None
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hiboss-bench-", dir=given.dir) as path:
        directory = Path(path)
        facts = report.machine(directory.resolve())
        neighbours = Neighbours()
        figures = measure(directory, given)
        facts["others_cpu"] = neighbours.share()
        if facts["others_cpu"] > report.QUIET:
            figures = on_a_busy_machine(figures)
    options = {
        name: getattr(given, name) for name in ("rows", "rounds", "seconds", "quick", "only", "beside")
    }
    found = report.document(figures, facts, options)
    print(report.heading(found))
    if earlier:
        print(report.comparison(found, earlier))
    print(f"\n{report.table(figures, earlier)}\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    missed = misses(figures)
    print("\n".join(f"MISSED {sentence}" for sentence in missed) or "All floors are reached.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

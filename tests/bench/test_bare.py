"""Bare writes what a daemon writes; the others that are measured beside us are what they seem."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from bench.bare import Bare
from bench.load import ROOT
from bench.redis_server import encoded

OWN = ("id", "message", "seq", "arrived", "created_at", "arrived_at")  # numbers and times


def rows(database: str, table: str) -> list[dict[str, object]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")]


def test_the_rows_of_bare_are_those_of_a_real_send_but_for_numbers_and_times(tmp_path: Path) -> None:
    bare = Bare(tmp_path)
    wrote = bare.run(group=3, seconds=0.01, warm_seconds=0.0)
    bare.check()
    assert wrote.rate > 0
    for table in ("message", "envelope"):
        first, *more = rows(bare.home.database, table)
        assert len(more) >= 3
        for row in more:
            assert {name: value for name, value in row.items() if name not in OWN} == {
                name: value for name, value in first.items() if name not in OWN
            }
    bare.close()


def test_a_command_is_written_to_redis_with_the_length_of_each_word_in_bytes() -> None:
    assert encoded("XADD", "s", "*", "text", "Grüße") == (
        "*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$4\r\ntext\r\n$7\r\nGrüße\r\n"
    )


def bench(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_redis_the_bench_says_how_to_install_it(tmp_path: Path) -> None:
    done = bench("--beside", "redis", path=str(tmp_path))
    assert done.returncode == 2
    assert "apt-get install redis-server" in done.stderr


def test_a_directory_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    done = bench("--beside", str(tmp_path), path=str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path} is neither the word redis nor a checkout of hiboss" in done.stderr

"""Each checker fails when its rule is broken, and leaves alone what only looks like it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import floors, sources

Check = Callable[[str, str], list[str]]
LONG_FILE = '"""Too long."""\n' + "x = 1\n" * sources.FILE_LINES
JUST_FITS = '"""Just fits."""\n' + "x = 1\n" * (sources.FILE_LINES - 1)


def _function(lines: int, head: str = "def f():") -> str:
    return f"{head}\n" + "    pass\n" * (lines - 1)


VIOLATIONS: list[tuple[Check, str]] = [
    (sources.long_files, LONG_FILE),
    (sources.long_functions, _function(61)),
    (sources.long_functions, _function(61, "async def f():")),
    (sources.long_functions, "class C:\n    def m(self):\n" + "        pass\n" * 60),
    (sources.missing_docstrings, ""),
    (sources.missing_docstrings, "x = 1\n"),
    (sources.missing_docstrings, "# a comment\nimport os\n"),
    (sources.missing_docstrings, '"""   """\n'),
    (sources.stray_sql, 'q = "SELECT id\\nFROM envelope"'),
    (sources.stray_sql, 'q = f"SELECT {columns} FROM {table}"'),
    (sources.stray_sql, 'q = "INSERT INTO tag VALUES (1)"'),
    (sources.stray_sql, 'q = "INSERT OR REPLACE INTO tag VALUES (1)"'),
    (sources.stray_sql, 'q = "UPDATE envelope SET box = 1"'),
    (sources.stray_sql, 'q = "DELETE FROM envelope"'),
    (sources.stray_sql, 'q = "CREATE TABLE t (x)"'),
    (sources.stray_sql, 'q = "CREATE UNIQUE INDEX i ON t (x)"'),
    (sources.stray_sql, 'q = "PRAGMA journal_mode"'),
    (sources.stray_sql, 'q = "select * from envelope"'),
    (sources.stray_sql, 'q = "select id, box from envelope where id = ?"'),
    (sources.stray_sql, 'q = "delete from envelope where id = 1"'),
    (sources.stray_sql, 'connection.execute("VACUUM")'),
    (sources.stray_sql, "connection.executescript(script)"),
    (sources.stray_prints, 'print("x")'),
    (sources.stray_prints, "import sys\nprint(1, file=sys.stderr)"),
    (sources.stray_prints, 'import typer\ntyper.echo("x")'),
    (sources.stray_prints, 'import click\nclick.secho("x")'),
    (sources.stray_prints, 'from typer import echo as say\nsay("x")'),
    (sources.stray_prints, "show = print"),
    (sources.stray_clocks, "from datetime import datetime, UTC\ndatetime.now(UTC)"),
    (sources.stray_clocks, "from datetime import datetime as dt\ndt.utcnow()"),
    (sources.stray_clocks, "import datetime\ndatetime.datetime.today()"),
    (sources.stray_clocks, "from datetime import date\ndate.today()"),
    (sources.stray_clocks, "import time\ntime.time()"),
    (sources.stray_clocks, "import time as t\nt.time_ns()"),
    (sources.stray_clocks, "from time import time\ntime()"),
    (sources.stray_clocks, "def f():\n    from time import time_ns as now\n    return now()"),
    (sources.stray_clocks, "from datetime import datetime\nmake(default=datetime.now)"),
    (sources.stray_clocks, "q = \"SELECT datetime('now')\""),
    (sources.stray_clocks, "q = \"SELECT strftime('%s', 'now')\""),
    (sources.stray_clocks, 'q = "VALUES (CURRENT_TIMESTAMP)"'),
    (sources.sql_clocks, "CREATE TABLE t (at TEXT DEFAULT CURRENT_TIMESTAMP);"),
    (sources.sql_clocks, "SELECT unixepoch ( 'now' );"),
    (sources.sql_clocks, "SELECT datetime();"),
    (sources.broad_excepts, "try:\n    f()\nexcept:\n    pass"),
    (sources.broad_excepts, "try:\n    f()\nexcept Exception:\n    pass"),
    (sources.broad_excepts, "try:\n    f()\nexcept (OSError, BaseException) as e:\n    raise"),
    (sources.broad_excepts, "try:\n    f()\nexcept* Exception:\n    pass"),
    (sources.broad_excepts, "import builtins\ntry:\n    f()\nexcept builtins.Exception:\n    pass"),
    (sources.broad_excepts, "from contextlib import suppress\nwith suppress(Exception):\n    f()"),
    (sources.late_imports, "def f():\n    import json"),
    (sources.late_imports, "class C:\n    async def m(self):\n        from ..paths import Home"),
    (sources.late_imports, "def f():\n    if x:\n        from . import codec"),
    (sources.late_imports, "import importlib\ndef f():\n    importlib.import_module('json')"),
    (sources.late_imports, "def f():\n    __import__('json')"),
    (sources.stray_errors, "from ..errors import NotFound\nclass NoProfile(NotFound):\n    pass"),
    (sources.stray_errors, "from .. import errors\nclass NoProfile(errors.NotFound):\n    pass"),
    (
        sources.stray_errors,
        "from hiboss.core.errors import NotFound as N\nclass P(N):\n    pass\nclass Q(P):\n    pass",
    ),
]

INNOCENT: list[tuple[Check, str, str]] = [
    (sources.long_files, "hiboss/x.py", JUST_FITS),
    (sources.long_functions, "hiboss/x.py", _function(60)),
    (sources.missing_docstrings, "hiboss/x.py", '"""A room."""\n'),
    (sources.stray_sql, "hiboss/x.py", '"""SELECT id FROM envelope: told in a docstring."""'),
    (sources.stray_sql, "hiboss/x.py", 'help = "Select what came from an agent; update or delete it"'),
    (sources.stray_sql, "hiboss/x.py", "setup.execute(home, name)"),
    (sources.stray_sql, "hiboss/store/x.py", 'connection.execute("SELECT 1 FROM t")'),
    (sources.stray_prints, sources.OUTPUT, 'print("x")'),
    (sources.stray_prints, "hiboss/x.py", 'log.info("print")\npaper.print(1)\nsys.stdout.flush()'),
    (sources.stray_clocks, sources.CLOCK, "from datetime import datetime, UTC\ndatetime.now(UTC)"),
    (sources.stray_clocks, "hiboss/x.py", "import time\ntime.monotonic()\ntime.sleep(1)"),
    (sources.stray_clocks, "hiboss/x.py", "from . import clock\nclock.now()\nhouse.time.time()\ntime()"),
    (
        sources.sql_clocks,
        "x.sql",
        "-- never datetime('now')\nSELECT strftime('%Y', created_at, 'unixepoch');",
    ),
    (sources.broad_excepts, "hiboss/x.py", "try:\n    f()\nexcept (OSError, ValueError):\n    pass"),
    (sources.late_imports, "hiboss/x.py", "import json\nif TYPE_CHECKING:\n    from os import path"),
    (
        sources.stray_errors,
        "hiboss/x.py",
        "from ..errors import NotFound\nclass C(Base):\n    error = NotFound",
    ),
]


def test_a_broken_rule_is_found() -> None:
    assert [(check, source) for check, source in VIOLATIONS if not check("hiboss/somewhere.py", source)] == []


def test_what_keeps_the_rule_passes() -> None:
    assert [(check, source) for check, path, source in INNOCENT if check(path, source)] == []


def test_the_clock_itself_may_not_ask_sqlite_for_the_time() -> None:
    assert sources.stray_clocks(sources.CLOCK, "q = \"SELECT datetime('now')\"") != []


def test_places_are_named_by_function_and_counted_one_by_one() -> None:
    source = (
        "class C:\n    def m(self):\n"
        + "        try:\n            f()\n        except Exception:\n            import json\n" * 2
    )
    assert sources.broad_excepts("a.py", source) == ["a.py::C.m", "a.py::C.m"]
    assert sources.late_imports("a.py", source) == ["a.py::C.m json", "a.py::C.m json"]


# --- floors --------------------------------------------------------------------------


TRESPASSES = [
    ("hiboss.core.errors", "hiboss.store.store"),
    ("hiboss.core.paths", "hiboss.cli.client"),
    ("hiboss.store.store", "hiboss.api.dispatch"),
    ("hiboss.channels.folder", "hiboss.agents.runner"),
    ("hiboss.agents.runner", "hiboss.routing.router"),
    ("hiboss.routing.router", "hiboss.rpc.codec"),
    ("hiboss.routing.router", "hiboss.api"),
    ("hiboss.api.dispatch", "hiboss.daemon.logs"),
    ("hiboss.cli.main", "hiboss.testing.running_daemon"),
    ("hiboss.cli.daemon_process", "hiboss.daemon.lifecycle"),  # it is started as a process
    ("hiboss.daemon.wiring", "hiboss.testing.scripted_adapter"),
    ("hiboss.rpc.server", "hiboss.store.store"),  # a door beside the api
    ("hiboss.cli.commands.envelope", "hiboss.routing.router"),
    ("hiboss.cli.call", "hiboss.rpc.codec"),  # a door through another
    ("hiboss", "hiboss.routing.router"),
    ("hiboss.routing.router", "hiboss.attic"),  # a folder without a floor
]
ALLOWED = [
    ("hiboss.store.store", "hiboss.core.paths"),
    ("hiboss.routing.delivery", "hiboss.channels.supervisor"),
    ("hiboss.api.context", "hiboss.routing.router"),
    ("hiboss.api.dispatch", "hiboss.api.auth"),
    ("hiboss.cli.daemon_process", "hiboss.cli.client"),
    ("hiboss.rpc.server", "hiboss.api.dispatch"),
    ("hiboss.daemon.lifecycle", "hiboss.store.store"),
    ("hiboss.testing.frozen_clock", "hiboss.daemon.lifecycle"),
    ("hiboss.cli.call", "hiboss"),
]


def test_an_import_against_the_floors_is_found_and_of_the_own_floor_or_a_lower_one_passes() -> None:
    every = TRESPASSES + ALLOWED
    assert [one for one in every if floors.trespasses({one[0]: {one[1]}, one[1]: set()})] == TRESPASSES


def test_a_cycle_is_found_between_modules_and_between_folders() -> None:
    graph = {"p.a.x": {"p.b.x"}, "p.b.x": set(), "p.b.y": {"p.a.y"}, "p.a.y": set()}
    assert floors.cycles(graph) == []
    assert floors.cycles(floors.folders(graph)) != []
    assert floors.cycles({**graph, "p.b.x": {"p.a.x"}}) != []


def test_a_folder_without_a_floor_and_a_floor_without_its_folder_are_found() -> None:
    graph: dict[str, set[str]] = {f"hiboss.{name}": set() for names in floors.FLOORS for name in names}
    assert floors.unplaced({"hiboss": set(), **graph}) == []
    assert floors.unplaced({**graph, "hiboss.attic.dust": set()}) == ["attic has no floor"]
    del graph["hiboss.routing"]
    assert floors.unplaced(graph) == ["routing is not there"]


def test_a_module_beside_the_package_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "core").mkdir()
    assert floors.loose_modules(tmp_path) == []
    (tmp_path / "utils.py").write_text("")
    assert floors.loose_modules(tmp_path) == ["utils.py"]


def test_the_graph_sees_imports_inside_functions_and_for_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hiboss_sample"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("def f():\n    from . import two\n")
    (package / "two.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import f\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    graph = floors.imports("hiboss_sample")
    assert graph["hiboss_sample.one"] == {"hiboss_sample.two"}
    assert floors.cycles(graph) != []

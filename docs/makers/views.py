"""docs/reference/views.md, from the views as SQLite has them and the tables they are made of."""

from __future__ import annotations

import re
import tempfile
from contextlib import closing
from importlib.resources import files

from hiboss.core.paths import Home
from hiboss.store.connection import Connection, connect
from hiboss.store.migrations import migrate

from .markdown import code, page, sentence, table

INTRO = """
The views of `~/.hiboss/hiboss.db` are the public schema: their names are plural, and their names and
columns stay. The tables below them (singular) may change with any version. Look with any SQLite program
while the daemon runs; never write.

Times are ISO 8601 in UTC, addresses are text, ids are the public ones (`e81`, `m57`).
"""
LETTERS = {
    "e": "envelope",
    "m": "message",
    "t": "thread",
    "c": "conversation",
    "r": "run",
    "b": "binding",
    "s": "schedule",
    "q": "ask",
}
KINDS = {"INTEGER": "a whole number", "REAL": "a number", "TEXT": "text", "BLOB": "bytes"}
_TYPES = "|".join(KINDS)
_COLUMN = re.compile(rf"\s+(\w+)\s+({_TYPES})\b(.*)")
_ADDED = re.compile(rf"^ALTER TABLE (\w+) ADD COLUMN (\w+) ({_TYPES})\b(.*)", re.MULTILINE)
SCHEMA = files("hiboss.store") / "schema"
Notes = dict[tuple[str, str], str]


def make() -> str:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(f"{directory}/home")
        home.create()
        with closing(connect(home, wait_seconds=5)) as connection:
            migrate(connection, home)
            return page("Database views", INTRO, *_sections(connection))


def columns(connection: Connection) -> dict[str, list[str]]:
    """Every public view with its columns."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name").fetchall()
    return {
        name: [row["name"] for row in connection.execute(f'PRAGMA table_info("{name}")')] for (name,) in names
    }


def _sections(connection: Connection) -> list[str]:
    notes = _table_notes(connection)
    words = _view_notes((SCHEMA / "views.sql").read_text())
    sections = []
    for view, names in columns(connection).items():
        sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", [view]).fetchone()[0]
        holds = [_holds(expression, _sources(sql), notes) for expression in _expressions(sql)]
        rows = [[code(name), what] for name, what in zip(names, holds, strict=True)]
        about = words.get(view, "")
        sections.append("\n\n".join(filter(None, [f"## {view}", about, table(("column", "holds"), rows)])))
    return sections


def _view_notes(script: str) -> dict[str, str]:
    """The comment right above each view."""
    found = re.findall(r"((?:^--.*\n)+)CREATE VIEW (\w+)", script, re.MULTILINE)
    return {view: sentence(re.sub(r"^--", "", comment, flags=re.MULTILINE)) for comment, view in found}


def _table_notes(connection: Connection) -> Notes:
    """What is said of each column where its table is declared: its type, its words, its comment."""
    notes = {}
    tables = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"
    for name, sql in connection.execute(tables):
        for line in sql.splitlines():
            if found := _COLUMN.match(line):
                notes[name, found[1]] = _note(found[2], found[3])
    for script in sorted(SCHEMA.iterdir(), key=lambda one: one.name):  # SQLite puts added ones into one line
        for name, column, kind, rest in _ADDED.findall(script.read_text()):
            notes[name, column] = _note(kind, rest)
    return notes


def _note(kind: str, rest: str) -> str:
    choices = re.search(r"IN \(([^)]*)\)", rest)
    comment = rest.partition("--")[2].strip()
    said = _choices(choices[1]) if choices else KINDS[kind]
    return f"{said}; {comment}" if comment else said


def _sources(sql: str) -> dict[str, str]:
    """The tables of a view by the names it uses for them."""
    found = re.findall(r"\b(?:FROM|JOIN) (\w+)(?: (\w+))?", sql)
    return {alias or name: name for name, alias in found}


def _expressions(sql: str) -> list[str]:
    """What stands between SELECT and FROM, cut at the commas outside of brackets."""
    parts, depth = [""], 0
    for piece in re.split(r"([(),]|\bFROM\b)", sql.partition("SELECT")[2]):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "FROM" and depth == 0:
            break
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [" ".join(part.split()) for part in parts]


def _holds(expression: str, sources: dict[str, str], notes: Notes) -> str:
    """What a column holds, as its expression and the table below show."""
    if "strftime(" in expression:
        return "a time"
    words = re.findall(r"THEN ('\w+')", expression)
    if expression.startswith("CASE") and words:
        return _choices(", ".join(words))
    if "group_concat(" in expression:
        ids = re.search(r"group_concat\('([a-z])' \|\|", expression)
        return f"{f'{LETTERS[ids[1]]} ids' if ids else 'names'}, with commas between"
    letter = re.match(r"'([a-z])' \|\|", expression)
    if letter:
        return f"{_article(LETTERS[letter[1]])} id, like `{letter[1]}1`"
    if "_ms / 1000.0" in expression:
        return "a number of seconds"
    if "':'" in expression:
        return "an address, like `agent:nex`"
    if " IS NOT NULL" in expression:
        return "1 or 0"
    filled = re.match(r"(?:ifnull|coalesce)\(([\w.]+),", expression)
    alias, _, name = (filled[1] if filled else expression).rpartition(".")
    note = notes.get((sources.get(alias, next(iter(sources.values()), "")), name), "")
    return note.partition(";")[0] if filled else note  # what is said of NULL is not true of this column


def _choices(listed: str) -> str:
    return " or ".join(code(word.strip().strip("'")) for word in listed.split(","))


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

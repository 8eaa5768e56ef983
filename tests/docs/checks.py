"""Checks of one page. Each returns a list of sentences that say what is wrong with it."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from hiboss.api.operation import REGISTRY
from hiboss.core.errors import HibossError
from hiboss.core.settings import Configuration

from . import vocabulary
from .pages import ROOT, Page

_DOTTED = re.compile(r"[a-z_]+(\.[a-z_]+)+")
_SNAKE = re.compile(r"[a-z]+(_[a-z0-9]+)+")
_WITH_DEFAULT = re.compile(r"`([a-z]+\.[a-z_]+)` \(([^)]+)\)")
_VARIABLE = re.compile(r"\bHIBOSS_[A-Z][A-Z0-9_]*\b")
_FILE = re.compile(r"[\w./-]+\.(py|sql|md)")
_REPOSITORY = ("hiboss/", "tests/", "docs/", "bench/")
_FILE_ENDINGS = ("py", "md", "sql", "toml", "db", "sock", "pid", "log", "json", "txt")
LANGUAGES = {"sh", "text", "python", "toml", "json", "sql"}


def languages(page: Page) -> list[str]:
    """Blocks in a language that no test checks."""
    return [
        f"{page.path}:{block.line}: no test checks a block of {block.language or 'no language'}"
        for block in page.blocks()
        if block.language not in LANGUAGES
    ]


# --- the command line ----------------------------------------------------------------


def commands(page: Page) -> list[str]:
    """Commands, flags and values of flags in the text that do not exist."""
    problems = []
    for code in page.inline():
        if code.startswith("hiboss "):
            problems += [f"{page.path}: `{code}`: {why}" for why in wrong_command(code)]
        elif re.match(r"--?[a-z]", code):
            words = code.replace(",", " ").split()
            every = [known for known in vocabulary.flags().values() if words[0] in known]
            if not any(not list(_wrong_flags(words, known)) for known in every):
                problems.append(f"{page.path}: no command takes {code}")
    return problems


def wrong_command(line: str) -> Iterator[str]:
    """Say what in `hiboss noun verb --flag` does not exist."""
    words = shlex.split(line)
    known = vocabulary.flags()
    if words[1].isupper() or words[1] == "--version":  # hiboss COMMAND --help
        return
    command = " ".join(_leading(words, known))
    if command in known:
        yield from (f"{command}: {why}" for why in _wrong_flags(words, known[command]))
    elif not any(one.startswith(f"{command} ") for one in known):  # a noun alone names a group
        yield "there is no such command"


def _wrong_flags(words: list[str], known: dict[str, list[str]]) -> Iterator[str]:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if not re.fullmatch(r"--?[a-z][a-z-]*", word):
            continue
        if word not in known:
            yield f"there is no flag {word}"
        elif after and known[word] and not set(after.strip("<>").split("|")) <= set(known[word]):
            yield f"{word} takes no {after}"


def mentions(page: Page) -> list[str]:
    """The same outside backticks, for example in error messages: `hiboss noun verb`, and flags."""
    known = vocabulary.flags()
    nouns = {command.split()[1] for command in known}
    text = re.sub(r"`[^`]*`|pip install --upgrade|gemini --acp|'--add-dir /srv/data'", "", page.prose)
    problems = []
    for found in re.finditer(r"\bhiboss((?: [a-z]+(?:-[a-z]+)*)+)", text):
        words = ["hiboss", *found[1].split()]
        if len(words) == 2 and text.startswith(" {", found.end()):
            continue  # an error fills in the verb: hiboss agent {verb}
        if words[1] in nouns and not any(" ".join(words[:end]) in known for end in range(2, len(words) + 1)):
            problems.append(f"{page.path}: there is no command {found[0]}")
    flags = {name for names in known.values() for name in names}
    for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - flags:
        problems.append(f"{page.path}: no command has the flag {flag}")
    return problems


def _leading(words: list[str], known: dict[str, dict[str, list[str]]]) -> list[str]:
    """Return the leading words that are a command; all words if none are."""
    for end in range(len(words), 0, -1):
        if " ".join(words[:end]) in known:
            return words[:end]
    return words


# --- names ---------------------------------------------------------------------------


def names(page: Page) -> list[str]:
    """Operations, settings, errors, parameters, columns and variables that do not exist."""
    problems = []
    for code in page.inline():
        ending = code.rpartition(".")[2]
        if _DOTTED.fullmatch(code) and ending not in _FILE_ENDINGS:
            known = code in vocabulary.dotted()
            if code.partition(".")[0] in vocabulary.dotted_beginnings() and not known:
                problems.append(f"{page.path}: there is no operation and no setting {code}")
        elif _SNAKE.fullmatch(code) and code not in vocabulary.names():
            problems.append(f"{page.path}: {code} is not an error, parameter, result, setting or column")
    for variable in set(_VARIABLE.findall(page.text)) - vocabulary.variables():
        problems.append(f"{page.path}: no code reads the variable {variable}")
    return problems


def defaults(page: Page) -> list[str]:
    """Wrong defaults: in `limits.recipients` (100), the number must be the default of the setting."""
    return [
        f"{page.path}: the default of {name} is {vocabulary.defaults()[name]}, not {value}"
        for name, value in _WITH_DEFAULT.findall(page.prose)
        if name in vocabulary.defaults()
        and vocabulary.defaults()[name] != re.sub(r"(?<=\d),(?=\d)", "", value)
    ]


def missing_names(page: Page, wanted: list[str]) -> list[str]:
    """Names that a reference must contain and does not."""
    found = set(page.inline())
    return [f"{page.path}: {name} is missing" for name in wanted if name not in found]


# --- places --------------------------------------------------------------------------


def files(page: Page) -> list[str]:
    """Files of the repository that are named but do not exist."""
    return [
        f"{page.path}: there is no {code}"
        for code in page.inline()
        if (_FILE.fullmatch(code) or code.startswith(_REPOSITORY)) and not (ROOT / code).exists()
    ]


def links(page: Page) -> list[str]:
    """Links to files, or to headings in them, that do not exist."""
    problems = []
    for link in page.links():
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue  # another web site
        target = os.path.normpath(os.path.join(os.path.dirname(page.path), path)) if path else page.path
        if path and not (ROOT / target).exists():
            problems.append(f"{page.path}: the link {link} leads nowhere")
        elif anchor and anchor not in (page if not path else Page.read(target)).anchors():
            problems.append(f"{page.path}: {target} has no heading #{anchor}")
    return problems


# --- blocks of data ------------------------------------------------------------------


def toml(page: Page) -> list[str]:
    """Blocks of settings that hiboss would refuse."""
    return [
        f"{page.path}:{block.line}: {why}"
        for block in page.blocks("toml")
        if (why := refused_settings(block.body))
    ]


def refused_settings(text: str) -> str | None:
    """Return why hiboss would refuse this config.toml; None if it accepts it."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            Configuration(file.name, {})
        except HibossError as error:
            return str(error)
    return None


def requests(page: Page) -> list[str]:
    """Blocks of JSON that are not valid, and requests in them that an operation would refuse."""
    problems = []
    for block in page.blocks("json"):
        where = f"{page.path}:{block.line}"
        for line in _documents(block.body):
            try:
                document = json.loads(line)
            except ValueError as error:
                problems.append(f"{where}: this is not JSON: {error}")
                continue
            problems += [f"{where}: {why}" for why in _wrong_request(document)]
    return problems


def _documents(body: str) -> list[str]:
    """A block is one document over several lines, as in the reference, or one per line."""
    return [body] if body.startswith(("{\n", "[\n")) else body.splitlines()


def _wrong_request(document: Any) -> Iterator[str]:
    if not isinstance(document, dict) or "method" not in document:
        return
    operation = REGISTRY.get(document["method"])
    if operation is None:
        yield f"there is no operation {document['method']}"
        return
    params = {name: value for name, value in document.get("params", {}).items() if name != "token"}
    try:
        operation.params.model_validate(params)
    except ValidationError as error:
        yield f"{document['method']} would refuse this: {error}"


EVERY_PAGE = [languages, commands, mentions, names, defaults, files, links, toml, requests]

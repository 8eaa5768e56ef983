"""Looking for a token where none may be: what was gathered, the forms a token can hide in, and processes."""

from __future__ import annotations

import base64
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cli import HIBOSS

_PLAIN = bytes.maketrans(b"-_", b"+/")  # tokens are written one way, webhooks' secrets the other
PIECE = 12  # so many characters of a token are no accident, and a shortened one still has them


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A token, what it stands for in a test, and the kinds of places where it may be found."""

    name: str
    token: str
    may: tuple[str, ...] = ()

    def forms(self) -> Iterator[tuple[str, bytes]]:
        """What to look for; all in small letters, since a folded token is a token still."""
        whole, secret = self.token.encode(), self.token.partition("_")[2].encode()
        for start in (0, (len(secret) - PIECE) // 2, len(secret) - PIECE):
            yield "as it is", secret[start : start + PIECE].lower()
        for shift in range(3):  # base64 looks different at each of three offsets
            yield "in base64", base64.b64encode(b"x" * shift + whole)[12:36].lower()
        yield "in hexadecimal", secret.hex()[: 2 * PIECE].encode()
        bits = base64.b64decode(secret.translate(_PLAIN) + b"=" * (-len(secret) % 4))
        yield "as its bits", bits[:PIECE].lower()
        yield "as its bits in hexadecimal", bits.hex()[: 2 * PIECE].encode()
        yield "as its bits in base64", base64.b64encode(bits)[:24].lower()

    def found_in(self, data: bytes) -> str | None:
        folded = data.lower()
        return next((form for form, piece in self.forms() if piece in folded), None)


@dataclass
class Evidence:
    """Everything that anybody could read, by the place where it stood: `output hiboss agent list`."""

    gathered: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, place: str, data: bytes | str) -> None:
        self.gathered.append((place, data if isinstance(data, bytes) else data.encode("utf-8", "replace")))

    def leaks(self, canaries: Iterable[Canary], kind: str = "") -> list[str]:
        """A sentence for each place of a kind in which a token stands that may not stand there."""
        canaries = list(canaries)
        return [
            f"{canary.name} stands in {place}, {form}"
            for place, data in self.gathered
            if place.startswith(kind)
            for canary in canaries
            if not place.startswith(canary.may or ("\0",)) and (form := canary.found_in(data))
        ]

    def add_home(self, home: str, when: str) -> None:
        """Every file of a home with its name; of a profile and a secret, what it has beside that one."""
        for directory, _, names in os.walk(home):
            for name in names:
                path = os.path.join(directory, name)
                if not os.path.isfile(path):
                    continue  # the socket
                place = os.path.relpath(path, home)
                data = Path(path).read_bytes()
                if os.path.dirname(place) in ("tokens", "secrets") and "." not in name:
                    data = b"\n".join(data.split(b"\n")[1:])
                self.add(f"file {place} {when}", place.encode() + b"\n" + data)
        self._add_cells(home, when)

    def _add_cells(self, home: str, when: str) -> None:
        """The values of the database too: a long one lies in pieces on its pages."""
        with sqlite3.connect(f"file:{home}/hiboss.db?mode=ro", uri=True) as database:
            text = "\n".join(database.iterdump())
        database.close()
        self.add(f"file hiboss.db {when}, its values", text)

    def add_tree(self, kind: str, root: Path, names: Iterable[str]) -> None:
        for name in names:
            place = root / name
            for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
                if path.is_file() and "__pycache__" not in path.parts:
                    self.add(f"{kind} {path.relative_to(root)}", path.read_bytes())


def started_by_hiboss(home: str) -> Iterator[tuple[str, bytes]]:
    """Command line and environment of every process of this home that is not the command a person typed."""
    mark = b"HIBOSS_HOME=" + os.fsencode(home) + b"\0"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            # The words first: what a command has just forked is that command, until it is another program.
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # it has ended, or is somebody else's
        if words and mark in environment + b"\0" and os.fsencode(HIBOSS) not in words.split(b"\0"):
            shown = words.replace(b"\0", b" ").decode(errors="replace")
            yield f"process {shown}", words + b"\n" + environment


@contextmanager
def watched(home: str, evidence: Evidence) -> Iterator[None]:
    """Look at the process list again and again, for those that live only for a moment."""
    ended = threading.Event()
    seen: set[tuple[str, bytes]] = set()

    def watch() -> None:
        while not ended.wait(0.05):
            seen.update(started_by_hiboss(home))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        for place, data in sorted(seen):
            evidence.add(place, data)

"""The daemon's log file: one line per record (time, level, action, sentence), and no secrets."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from ..core import clock
from ..core.paths import Home
from ..core.quoting import LONGEST_SECRET, redact
from ..core.settings import Settings

# Sentences quote texts of others: control characters must not start a new line or control a terminal.
_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160), 0x2028, 0x2029)}

LONGEST_LINE = 10_000  # characters; a text of others may have megabytes


class _LineFormatter(logging.Formatter):
    """Formats one line: time, level, action, sentence; then a traceback if there is one. Redacts secrets."""

    def format(self, record: logging.LogRecord) -> str:
        action = getattr(record, "action", record.name.removeprefix("hiboss."))
        sentence = _line(record.getMessage())
        text = f"{clock.iso(clock.now())} {record.levelname.lower()} [{action}] {sentence}"
        if record.exc_info:
            for line in redact(self.formatException(record.exc_info)).split("\n"):
                text += f"\n  {_line(line)}"
        return redact(text)


def _line(text: str) -> str:
    # First without secrets, then cut: no beginning of one stays.
    return redact(text[: LONGEST_LINE + LONGEST_SECRET])[:LONGEST_LINE].translate(_ESCAPES)


class _PrivateFile(RotatingFileHandler):
    """A log file that only its owner can read, also the new file after each rotation."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=private)  # type: ignore[return-value]


def start(home: Home, settings: Settings) -> None:
    """Log to logs/daemon.log, and rotate it."""
    handler = _PrivateFile(
        home.log_file,
        maxBytes=settings.log_bytes,
        backupCount=settings.log_files,
        encoding="utf-8",
        errors="backslashreplace",
    )
    handler.setFormatter(_LineFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it logs every wake twice
    for library in ("httpx", "httpcore"):  # they log whole URLs, which can contain secrets
        logging.getLogger(library).setLevel(logging.WARNING)
    adjust(settings)


def adjust(settings: Settings) -> None:
    """Apply changed settings: level, size and number of files."""
    root = logging.getLogger()
    root.setLevel(settings.log_level.upper())
    for handler in root.handlers:
        if isinstance(handler, _PrivateFile):
            handler.maxBytes, handler.backupCount = settings.log_bytes, settings.log_files

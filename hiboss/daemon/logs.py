"""The daemon's log: a sentence, what it is about, and never a secret."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

from ..core import clock
from ..core.paths import Home
from ..core.quoting import redact
from ..core.settings import Settings

# What others said is quoted in our sentences: it shall not begin a line of its own, nor steer a terminal.
_TAMED = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160), 0x2028, 0x2029)}


class _Line(logging.Formatter):
    """One line: time, level, action, sentence; then a traceback if there is one. Secrets redacted."""

    def format(self, record: logging.LogRecord) -> str:
        action = getattr(record, "action", record.name.removeprefix("hiboss."))
        said = record.getMessage().translate(_TAMED)
        text = f"{clock.iso(clock.now())} {record.levelname.lower()} [{action}] {said}"
        if record.exc_info:
            for line in self.formatException(record.exc_info).split("\n"):
                text += f"\n  {line.translate(_TAMED)}"
        return redact(text)


class _PrivateFile(RotatingFileHandler):
    """A log readable for its owner only, also the new one after each rotation."""

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
    handler.setFormatter(_Line())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it reports every wake twice
    for library in ("httpx", "httpcore"):  # they write down whole addresses, with what is secret in them
        logging.getLogger(library).setLevel(logging.WARNING)
    adjust(settings)


def adjust(settings: Settings) -> None:
    """Follow settings that have changed."""
    root = logging.getLogger()
    root.setLevel(settings.log_level.upper())
    for handler in root.handlers:
        if isinstance(handler, _PrivateFile):
            handler.maxBytes, handler.backupCount = settings.log_bytes, settings.log_files

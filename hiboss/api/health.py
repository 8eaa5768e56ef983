"""Whether the daemon is alive, for whoever may ask without a token (`/health`).

It says `ok` when the event loop answers, the store can be read, and the writer takes changes. It writes
nothing: a stranger could keep the disk busy, and a full disk is nothing that a restart would heal. Why
something fails is told to nobody here: it is in the log.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from .. import __version__
from ..core.errors import HibossError
from ..store import counters
from ..store.store import Store
from .context import Context


class Health(TypedDict):
    status: Literal["ok", "failing"]
    version: str


def health(context: Context) -> Health:
    """Return whether the daemon works. A door answers `failing` with the status 503."""
    works = context.store.is_writing and _is_readable(context.store)
    return {"status": "ok" if works else "failing", "version": __version__}


def _is_readable(store: Store) -> bool:
    try:
        store.read(counters.last_arrived)
    except HibossError:
        return False
    return True

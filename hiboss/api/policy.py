"""The level each operation needs: the declared one, or the one the boss chose instead."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import FixedLevel, InvalidParams, UnknownOperation
from ..core.quoting import nearest
from ..store import policy as policy_store
from ..store.store import Store
from .operation import REGISTRY, Door, Level

# Rights that are not operations; operations ask for them.
RIGHTS = {
    "control.interrupt": Level.PRIVILEGED,
    "control.route": Level.PRIVILEGED,
    "observe": Level.PRIVILEGED,
}
WORDS = ("restricted", "standard", "privileged", "boss")


class Policy:
    """The levels in force, in memory. An operation without an entry needs the boss."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.levels: dict[str, Level] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the levels from the store."""
        self.adopt(self._store.read(policy_store.get))

    def adopt(self, decided: Mapping[str, str]) -> None:
        """Put these levels in force, and the declared ones for all other operations."""
        skipped = unknown(decided)
        self.levels = defaults() | {name: _level(decided[name]) for name in decided.keys() - skipped.keys()}

    def needs(self, name: str, door: Door = "socket") -> Level:
        """Return the level that an operation or a right needs now, through this door."""
        level = self.levels.get(name, Level.BOSS)
        if level is Level.OPEN and door != "socket":
            return REGISTRY[name].elsewhere or Level.BOSS
        return level


def defaults() -> dict[str, Level]:
    """Return the declared level of every operation and right."""
    return {**RIGHTS, **{name: operation.level for name, operation in REGISTRY.items()}}


def changeable() -> dict[str, Level]:
    """Return the declared levels of the operations and rights whose level a policy can change."""
    return {name: level for name, level in defaults().items() if name in RIGHTS or not REGISTRY[name].fixed}


def unknown(decided: Mapping[str, str]) -> dict[str, str]:
    """Return the entries that only another version of hiboss lets a policy change; they are kept."""
    known = changeable()
    return {name: word for name, word in decided.items() if name not in known}


def _level(word: str) -> Level:
    # A word that this version does not know needs the boss, so that nothing becomes allowed by mistake.
    return Level[word.upper()] if word in WORDS else Level.BOSS


def check(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the entries that differ from the declared levels; raises when one cannot be set."""
    declared = changeable()
    for name, word in wanted.items():
        if name in REGISTRY and REGISTRY[name].fixed:
            if word != REGISTRY[name].level.word:
                raise FixedLevel(operation=name, level=REGISTRY[name].level.word)
        elif name not in declared:
            raise UnknownOperation(name=name[:80], hint=nearest(name, list(declared)))
        elif word not in WORDS:
            hint = nearest(word, list(WORDS))
            raise InvalidParams(
                detail=f"{name}: {word[:40]} is not a level{hint}; the levels are {', '.join(WORDS)}"
            )
    return {name: word for name, word in wanted.items() if name in declared and word != declared[name].word}

"""Which level each operation needs: as declared, unless the boss decided otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import FixedLevel, InvalidParams, UnknownOperation
from ..core.quoting import nearest
from ..store import policy as policy_store
from ..store.store import Store
from .operation import REGISTRY, Level

# Rights that are no operation of their own, but a question some operations ask.
RIGHTS = {
    "control.interrupt": Level.PRIVILEGED,
    "control.route": Level.PRIVILEGED,
    "observe": Level.PRIVILEGED,
}
WORDS = ("restricted", "standard", "privileged", "boss")


class Policy:
    """The levels in force, in memory; what is not in it needs the boss."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.levels: dict[str, Level] = {}
        self.refresh()

    def refresh(self) -> None:
        """The store holds others now."""
        self.adopt(self._store.read(policy_store.get))

    def adopt(self, decided: Mapping[str, str]) -> None:
        skipped = unknown(decided)
        self.levels = defaults() | {name: _level(decided[name]) for name in decided.keys() - skipped.keys()}

    def needs(self, name: str) -> Level:
        return self.levels.get(name, Level.BOSS)


def defaults() -> dict[str, Level]:
    return {**RIGHTS, **{name: operation.level for name, operation in REGISTRY.items()}}


def changeable() -> dict[str, Level]:
    """What a policy may decide, with what is declared."""
    return {name: level for name, level in defaults().items() if name in RIGHTS or not REGISTRY[name].fixed}


def unknown(decided: Mapping[str, str]) -> dict[str, str]:
    """What this version lets no policy decide, another one did: it is left alone."""
    known = changeable()
    return {name: word for name, word in decided.items() if name not in known}


def _level(word: str) -> Level:
    return Level[word.upper()] if word in WORDS else Level.BOSS


def check(wanted: Mapping[str, str]) -> dict[str, str]:
    """The deviations from what is declared, if all of this can be decided by a policy."""
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
                detail=f"{name}: {word[:40]} is no level{hint}; levels are {', '.join(WORDS)}"
            )
    return {name: word for name, word in wanted.items() if name in declared and word != declared[name].word}

"""Checkers over the graph of imports: the floors of the house (DESIGN.md §2) and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp

Graph = Mapping[str, set[str]]

# Lowest first. A new room must be given its floor here.
FLOORS = {
    "words": (
        "contract",
        "cron",
        "wording",
        "events",
        "errors",
        "fault",
        "clock",
        "ids",
        "address",
        "envelope",
        "config",
        "paths",
        "render",
        "forgery",
        "crashpoint",
    ),
    "route": (
        "api",
        "router",
        "media",
        "store",
        "scheduler",
        "delivery",
        "adapters",
        "waiting",
        "presence",
        "runner",
        "shape",
        "modules",
        "patience",
        "places",
    ),
    "doors": ("cli", "rpc"),
    "assembly": ("daemon", "lock", "logs", "testing", "frozen", "scripted", "works"),
}
_ORDER = list(FLOORS)
_FLOOR_OF = {room: floor for floor, rooms in FLOORS.items() for room in rooms}


def imports(package: str) -> dict[str, set[str]]:
    """Who imports whom inside a package, wherever in a file the import stands."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}


def rooms(graph: Graph) -> dict[str, set[str]]:
    """The same graph between rooms: `hiboss.api.desk` lies in the room `api`."""
    found: dict[str, set[str]] = {}
    for name, targets in graph.items():
        found.setdefault(room(name), set()).update(room(target) for target in targets)
    return {name: targets - {name} for name, targets in found.items()}


def room(module: str) -> str:
    """The part below the package; '' for the package itself, which holds the version."""
    return module.split(".")[1] if "." in module else ""


def cycles(graph: Graph) -> list[str]:
    """One cycle as a sentence, if there is any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" imports ".join(reversed(error.args[1]))]
    return []


def unplaced(graph: Graph) -> list[str]:
    """Rooms that stand on no floor, and floors' rooms that do not stand at all."""
    present = {room(name) for name in graph} - {""}
    return [f"{name} has no floor" for name in sorted(present - set(_FLOOR_OF))] + [
        f"{name} is not there" for name in sorted(set(_FLOOR_OF) - present)
    ]


def trespasses(graph: Graph) -> list[str]:
    """Every import that the floors forbid, with the rule it breaks."""
    return [
        f"{name} imports {target}: {rule}"
        for name, targets in sorted(graph.items())
        for target in sorted(targets)
        if (rule := _forbidden(name, target))
    ]


def _forbidden(name: str, target: str) -> str | None:
    here, there = room(name), room(target)
    if there == "":
        return None  # the version is everybody's
    if target == "hiboss.daemon" and name != "hiboss.frozen":  # tests of time need it in their process
        return "the daemon is started as a process, never imported"
    if here == there:
        return None
    floor, below = _FLOOR_OF.get(here, "words"), _FLOOR_OF.get(there, "assembly")
    if _ORDER.index(below) > _ORDER.index(floor):
        return f"{floor} stand below {below}"
    if floor == "doors" and below == "route" and there != "api":
        return "doors know words, doors and api"
    if floor == "route" and there == "api":
        return "inside the route nothing imports api"
    return None

"""Checkers over the graph of imports: the floors of the package and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

Graph = Mapping[str, set[str]]

# The folders of the package, lowest first. A module imports its own floor and lower ones.
FLOORS = (
    ("core",),
    ("store",),
    ("channels",),
    ("agents",),
    ("routing",),
    ("api",),
    ("rpc", "web", "mcp", "cli"),
    ("daemon",),
    ("testing",),
)
DOORS = ("rpc", "web", "mcp", "cli")  # each imports core and api, and never another door
_LEVEL = {folder: level for level, folders in enumerate(FLOORS) for folder in folders}


def imports(package: str) -> dict[str, set[str]]:
    """Who imports whom inside a package, wherever in a file the import stands."""
    graph = grimp.build_graph(package, cache_dir=None)
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}


def folders(graph: Graph) -> dict[str, set[str]]:
    """The same graph between folders: `hiboss.api.dispatch` lies in the folder `api`."""
    found: dict[str, set[str]] = {}
    for name, targets in graph.items():
        found.setdefault(folder(name), set()).update(folder(target) for target in targets)
    return {name: targets - {name} for name, targets in found.items()}


def folder(module: str) -> str:
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
    """Folders that are on no floor, and folders of a floor that do not exist."""
    present = {folder(name) for name in graph} - {""}
    return [f"{name} has no floor" for name in sorted(present - set(_LEVEL))] + [
        f"{name} is not there" for name in sorted(set(_LEVEL) - present)
    ]


def loose_modules(package: Path) -> list[str]:
    """Modules beside the package's own `__init__.py`: every module belongs in a folder."""
    return sorted(path.name for path in package.glob("*.py") if path.name != "__init__.py")


def trespasses(graph: Graph) -> list[str]:
    """Every import that the floors forbid, with the rule it breaks."""
    return [
        f"{name} imports {target}: {rule}"
        for name, targets in sorted(graph.items())
        for target in sorted(targets)
        if (rule := _forbidden(name, target))
    ]


def _forbidden(name: str, target: str) -> str | None:
    here, there = folder(name), folder(target)
    if there in ("", here):
        return None  # the version may be read everywhere
    if _LEVEL.get(there, len(FLOORS)) > _LEVEL.get(here, -1):
        return f"{here or 'the package'} is below {there}"
    if here in DOORS and there in DOORS:
        return "a door imports no other door"
    if here in DOORS and there not in ("core", "api"):
        return "a door imports core and api alone"
    return None

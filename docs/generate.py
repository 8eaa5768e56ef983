"""Makes the reference pages, config.example.toml, and the tables of docs/providers.md and docs/metrics.md.

Also what the quick way of the command line reads (hiboss/cli/quick/).

python -m docs.generate          writes them (make docs)
python -m docs.generate --check  writes nothing, says which differ, and ends with status 1 if any does
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

from .makers import cli, contracts, errors, metrics, providers, quick_arguments, rpc, settings, views
from .makers.markdown import COMMAND

ROOT = Path(__file__).resolve().parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/cli.md": cli.make,
    "docs/reference/rpc.md": rpc.make,
    "docs/reference/settings.md": settings.make,
    "docs/reference/errors.md": errors.make,
    "docs/reference/contracts.md": contracts.make,
    "docs/reference/views.md": views.make,
    "config.example.toml": settings.example,
    quick_arguments.ARGUMENTS: quick_arguments.table,
    quick_arguments.HELP: quick_arguments.root_help,
}
# Pages that people write, with parts that are made; what makes these gets the page.
PARTLY: dict[str, Callable[[str], str]] = {
    "docs/providers.md": providers.make,
    "docs/metrics.md": metrics.make,
}


def differences(root: Path = ROOT) -> list[str]:
    """A diff for each page that is not what the code would make it."""
    made = _made(root)
    return [diff for path, text in made.items() if (diff := _difference(path, root / path, text))]


def write(root: Path = ROOT) -> list[str]:
    """Write the pages that differ; their paths."""
    changed = []
    for path, text in _made(root).items():
        file = root / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _made(root: Path) -> dict[str, str]:
    """Every page as the code makes it."""
    found = {path: make() for path, make in PAGES.items()}
    for path, make in PARTLY.items():
        if (root / path).exists():
            found[path] = make((root / path).read_text(encoding="utf-8"))
    return found


def _difference(path: str, file: Path, made: str) -> str:
    found = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = unified_diff(
        found.splitlines(keepends=True), made.splitlines(keepends=True), path, f"{path} (made from the code)"
    )
    return "".join(lines)


def main(words: list[str]) -> int:
    if words == ["--check"]:
        stale = differences()
        for diff in stale:
            sys.stdout.write(diff + "\n")
        if stale:
            sys.stdout.write(f"{len(stale)} generated files are stale; run: {COMMAND}\n")
        return 1 if stale else 0
    if words:
        sys.stderr.write(f"usage: {COMMAND} [--check]\n")
        return 2
    for path in write():
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

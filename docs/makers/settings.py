"""docs/reference/settings.md and config.example.toml, from the table of settings."""

from __future__ import annotations

import json
from textwrap import fill
from typing import Any

from hiboss.core.setting_values import KIB, MIB, Setting
from hiboss.core.settings import SECTIONS, TABLE

from .markdown import NOTICE, code, page, table

INTRO = """
A setting has its value from the first of these that gives one:

1. the environment, as `HIBOSS_<SECTION>_<KEY>`; a list is separated by commas there;
2. `config.toml` in the home (`~/.hiboss/config.toml`; a missing file is an empty one);
3. the default.

A name that is not below is refused, with the nearest right one; so is a value that does not fit. The
daemon then does not start. `hiboss config check` says beforehand what is wrong, if anything.
`hiboss config show` says what is in force and where it comes from; with `--defaults`, and in
`config.example.toml` in the repository, every setting is at its default.

After a change of the file, `hiboss config reload` (or the signal SIGHUP to the daemon) reads it again.
What is wrong then is refused and the last good settings stay. A setting marked *next start* waits for the
daemon's next start. The environment is that of the daemon when it was started, not that of your terminal.
"""

HEAD = f"""# {NOTICE.replace("`", "")}
#
# Every setting, at its default. Copy this file to ~/.hiboss/config.toml and take away the # before
# what you want to change, then: hiboss config reload
# The same with all details: docs/reference/settings.md
"""


def make() -> str:
    return page("Settings", INTRO, *(_section(section) for section in SECTIONS))


def example() -> str:
    parts = [HEAD]
    for section in SECTIONS:
        parts.append(f"[{section}]\n\n" + "\n".join(_lines(s) for s in TABLE if s.section == section))
    return "\n".join(parts)


def readable(value: Any) -> str:
    """A default as a person would write it: 1 MiB, 5, ~/.ssh, ~/.gnupg."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def size(setting: Setting) -> str | None:
    """The default as a size, where it is a round one."""
    if setting.name.endswith("bytes"):
        for unit, word in ((MIB, "MiB"), (KIB, "KiB")):
            if setting.default >= unit and setting.default % unit == 0:
                return f"{setting.default // unit} {word}"
    return None


def default(setting: Setting) -> str:
    return size(setting) or readable(setting.default)


def _section(section: str) -> str:
    rows = [
        [
            code(setting),
            default(setting),
            setting.wants,
            "at once" if setting.live else "*next start*",
            code(setting.variable),
            setting.help,
        ]
        for setting in TABLE
        if setting.section == section
    ]
    titles = ("setting", "default", "accepts", "in force", "variable", "what it is")
    return f"## {section}\n\n{table(titles, rows)}"


def _lines(setting: Setting) -> str:
    """Its help as a comment, then the setting itself, commented out."""
    start = "" if setting.live else " In force from the daemon's next start."
    about = f"{setting.help}{start} Accepts {setting.wants}."
    comment = fill(about, width=100, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n#{setting.key} = {_toml(setting)}\n"


def _toml(setting: Setting) -> str:
    value = size(setting) or setting.default
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)

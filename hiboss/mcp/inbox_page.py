"""The inbox as a small page of HTML, for clients that show apps. It has no script, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:1rem;color-scheme:light dark}
article{margin:.5rem 0;padding:.5rem .75rem;border-left:3px solid #888}
article.user{border-color:#2a7}
header{font-size:.8rem;opacity:.7}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:0}
"""


def page(agent: str, entries: Iterable[dict[str, Any]]) -> str:
    """Return the page of a chat."""
    shown = "".join(_entry(one, agent) for one in entries) or "<p>Nothing was said yet.</p>"
    title = escape(f"{agent} and the boss")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{shown}</body></html>"
    )


def _entry(one: dict[str, Any], agent: str) -> str:
    who = "boss" if one["author"] == "user" else agent
    notes = [escape(who), escape(one["ts"])]
    if "edits" in one:
        notes.append(f"changes {escape(one['edits'])}")
    if one.get("attachments"):
        notes.append("files: " + escape(", ".join(one["attachments"])))
    text = "<em>deleted</em>" if one.get("deleted") else f"<pre>{escape(one['content'])}</pre>"
    return f'<article class="{escape(one["author"])}"><header>{" · ".join(notes)}</header>{text}</article>'

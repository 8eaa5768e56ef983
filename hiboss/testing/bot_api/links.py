"""Addresses in links: which ones the platform takes, and its words about the others."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_HOST = re.compile(r"(?:[^/?#@]*@)?(\[[0-9a-fA-F:.]+\]|[^/?#:]*)(?::\d+)?(?=[/?#]|$)")
_OWN = ("tg", "ton", "tonsite")  # schemes that the apps open themselves


def link_problem(url: str) -> str | None:
    """Return what is wrong with the address of a link; None if it is good. Without a scheme it is HTTP."""
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    if found and scheme in _OWN:
        rest = url[found.end() :]
        return None if rest and ":" not in rest.partition("?")[0] else f"Wrong {scheme} URL"
    if scheme == "mailto":  # made into something else by the platform, but harmless: a guess
        return None if "@" in url else "Wrong HTTP URL"
    if found and found.group(2):
        if scheme not in ("http", "https"):
            return "Unsupported URL protocol"
        url = url[found.end() :]
    host = _HOST.match(url)
    if not url or (host is not None and not host.group(1)):
        return "URL host is empty"
    if host is None or re.search(r"\s", host.group()) or not re.search(r"[^.]\.[^.]|^\[", host.group(1)):
        return "Wrong HTTP URL"
    return None


def rich_link_problem(url: str) -> str | None:
    """Return what is wrong with a link of a rich message, which may also be a phone number or an anchor."""
    if url.startswith(("#", "tel:")):
        return None
    return link_problem(url)

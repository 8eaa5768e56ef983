"""Addresses in links: which ones can be behind words, and how the others are shown.

Telegram refuses a whole post if the address of one text_link is wrong for it, as http://localhost is, which
has no dot. It makes mailto:a@b.c a link to a web page; an address in the text it finds by itself.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_HTTP = re.compile(r"https?://(?:[a-z0-9_-]+\.)+[a-z0-9-]+(?::\d{1,5})?(?:[/?#]\S*)?", re.IGNORECASE)
_APP = re.compile(r"tg://[a-z0-9_-]+/?(?:\?\S*)?", re.IGNORECASE)
_LONGEST = 2000
_KEPT = "%/:=&?~#+!$,;'@()*[]"  # what has a meaning in an address, or is harmless


def linked(url: str) -> str | None:
    """Return the address for a text_link; None if there can be none."""
    address = quote(url.strip(), safe=_KEPT)
    good = len(address) <= _LONGEST and (_HTTP.fullmatch(address) or _APP.fullmatch(address))
    return address if good else None


def shown(url: str, label: str) -> str:
    """Return what to write behind the words of a link that cannot be one."""
    url = url.strip().removeprefix("mailto:")
    if not url or url.startswith(("#", "data:")) or url == label.strip():
        return ""
    return f" ({url})" if label.strip() else url


def is_bare(url: str, label: str) -> bool:
    """Tell whether the words of a link are the address itself, which the platform links by itself."""
    return url.strip() == label.strip()

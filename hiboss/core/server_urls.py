"""Addresses of web servers that hiboss posts to: which are allowed, and how their refusals are read."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from . import clock

LONGEST_URL = 2_000
LONGEST_PAUSE = 24 * 3600.0  # seconds; a longer Retry-After is cut to this
_WRITABLE = re.compile(r"[!-~]+")  # printable ASCII, no spaces
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


def check_url(url: str) -> None:
    """Raise ValueError if hiboss must not post to this address."""
    if len(url) > LONGEST_URL:
        raise ValueError(f"the address is longer than {LONGEST_URL} characters")
    if not _WRITABLE.fullmatch(url) or "\\" in url:
        raise ValueError("an address has only ASCII characters, and no spaces; write others like %C3%A4")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValueError(f"this is not an address: {error}") from None
    if parts.scheme not in ("https", "http"):
        raise ValueError("an address begins with https:// (or http:// for a server on this machine)")
    if "@" in parts.netloc:
        raise ValueError(
            "the address must not contain a user or password: it is stored in the database. Let the server "
            "check the signature instead"
        )
    if "#" in url:
        raise ValueError("the address must not contain #: what follows it is never sent to the server")
    if port == 0 or not (_HOST.fullmatch(host) or _ip(host)):
        raise ValueError("this is not the address of a server; write it like https://example.org/turns")
    if parts.scheme == "http" and not _on_this_machine(host):
        raise ValueError("http is for a server on this machine only (127.0.0.1, ::1, localhost); use https")


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _on_this_machine(host: str) -> bool:
    address = _ip(host)
    return host == "localhost" if address is None else address.is_loopback


def server_name(url: str) -> str:
    """Return scheme and host for errors and logs; the path and the query may contain secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def phrase(status: int) -> str:
    """Return what a status means, in brackets; nothing for one that is not known."""
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def retry_after(value: str) -> float | None:
    """Return the seconds of a header Retry-After, which is a number or a date; None: it is neither."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    left = clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - clock.now()
    return min(max(left / 1000, 0.0), LONGEST_PAUSE)

"""Signatures of webhooks: those of the Standard Webhooks specification, made and checked, and GitHub's.

A check does the same work whatever is wrong, also for a key that nobody has: who sends something forged
learns nothing from the time that the refusal takes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

PREFIX = "whsec_"
SECRET_BYTES = 32
LEAST_KEY_BYTES, MOST_KEY_BYTES = 24, 64  # as the specification says
TOLERANCE_SECONDS = 300  # so far may the clock of a sender differ from ours, and so long may a request travel
MOST_SIGNATURES = 16  # in one request: while its sender changes its secret it has two
LONGEST_HEADER = 4096  # characters of one that is read
NOBODYS_KEY = secrets.token_bytes(SECRET_BYTES)  # what is checked with it fails
_ID = re.compile(r"[!-~]{1,256}")  # printable ASCII, no spaces
_SECONDS = re.compile(r"[0-9]{1,12}")
_DIGEST = re.compile(r"sha256=([0-9a-f]{64})")


def new_secret() -> str:
    """Make a secret to sign with. The receiver needs the same one."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes | None:
    """Return the key that a secret stands for; None if it is damaged."""
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def check_secret(secret: str) -> str:
    """Return a secret that somebody chose, if it can be used; raise ValueError if not."""
    key = key_of(secret) if secret.startswith(PREFIX) else None
    if key is None or not LEAST_KEY_BYTES <= len(key) <= MOST_KEY_BYTES:
        raise ValueError(
            f"a secret is {PREFIX} and then {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes in base64; "
            "hiboss webhook create makes one"
        )
    return secret


def signed(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the three headers that prove sender, content and time to the receiver."""
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{_signature(key, delivery, str(seconds), body).decode()}",
    }


def _signature(key: bytes, delivery: str, seconds: str, body: bytes) -> bytes:
    content = f"{delivery}.{seconds}.".encode() + body
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256))


def verified(
    keys: tuple[bytes, bytes] | None, headers: Mapping[str, str], body: bytes, now: int
) -> str | None:
    """Return the id of a request that is signed with one of two keys; None: refuse it.

    `keys`: the key of Standard Webhooks, and GitHub's, which takes the secret as it is written; None: there
    is nobody of that name. `headers` by their names in small letters. `now` in milliseconds.
    """
    standard, github = keys or (NOBODYS_KEY, NOBODYS_KEY)
    if "webhook-signature" not in headers and "x-hub-signature-256" in headers:
        found = _verified_github(github, headers, body)
    else:
        found = _verified_standard(standard, headers, body, now)
    return found if keys is not None else None


def _verified_standard(key: bytes, headers: Mapping[str, str], body: bytes, now: int) -> str | None:
    delivery, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    well_formed = bool(_ID.fullmatch(delivery) and _SECONDS.fullmatch(seconds))
    if not well_formed:
        delivery, seconds = "-", "0"
    given = headers.get("webhook-signature", "")[:LONGEST_HEADER].split(" ")[:MOST_SIGNATURES]
    wanted = b"v1," + _signature(key, delivery, seconds, body)
    fits = [hmac.compare_digest(one.encode("utf-8", "replace"), wanted) for one in given]
    in_time = abs(now // 1000 - int(seconds)) <= TOLERANCE_SECONDS
    return delivery if any(fits) and well_formed and in_time else None


def _verified_github(key: bytes, headers: Mapping[str, str], body: bytes) -> str | None:
    """Check what GitHub sends. Its signature covers the body alone, so the body is part of the id."""
    delivery = headers.get("x-github-delivery", "")
    given = _DIGEST.fullmatch(headers.get("x-hub-signature-256", ""))
    wanted = hmac.digest(key, body, hashlib.sha256)
    fits = hmac.compare_digest(bytes.fromhex(given[1]) if given else bytes(32), wanted)
    found = f"github:{delivery}:{hashlib.sha256(body).hexdigest()}"
    return found if fits and given is not None and _ID.fullmatch(delivery) else None

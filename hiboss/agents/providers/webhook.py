"""A server of yours: each turn is one signed POST, and what it answers is the agent's answer.

Signed as the Standard Webhooks specification says, so that its libraries verify it. The secret
lies beside the other secrets and never in the settings, the database or an error.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import codecs
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, urlsplit

import orjson

from ... import __version__
from ...core import clock
from ...core.contracts.failures import LaneError, Refused, TurnError
from ...core.contracts.provider import Answer, OnProgress, OnStart, Progress, TurnInput

if TYPE_CHECKING:
    import httpx

PREFIX = "whsec_"
SECRET_BYTES = 32
LONGEST_URL = 2_000
CONNECT_SECONDS = 10.0
LONGEST_PAUSE = 24 * 3600.0  # seconds; whoever asks for more is asked again after a day
_WRITABLE = re.compile(r"[!-~]+")  # printable, and no blank
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_LANE = {  # what would be answered to every turn
    401: ("refused", "check the secret there"),
    402: ("refused", "the account there has to be looked at"),
    403: ("refused", "check the secret there"),
    404: ("not_found", "check the address"),
    405: ("not_found", "check the address: it takes no POST"),
    408: ("unreachable", "it waited too long for the turn"),
    410: ("not_found", "check the address"),
    425: ("server_error", "it is not ready yet"),
    429: ("rate_limited", "it gets too many turns"),
}


def new_secret() -> str:
    """A secret to sign with; the receiver gets the same."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class Webhook:
    """The contract's provider for a server that takes webhooks."""

    name: ClassVar[str] = "webhook"
    options: ClassVar[tuple[str, ...]] = ("url",)

    @classmethod
    def configure(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        url = given.get("url")
        if not isinstance(url, str) or not url.strip():
            raise Refused("the webhook provider needs an address (--url https://example.org/turns)")
        _check_url(url.strip())
        return {"url": url.strip()}

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._url = str(settings["url"])
        self._secret = settings.get("secret")
        self._place = _place(urlsplit(self._url))

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Answer:
        body = request_body(turn)
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/plain",
            "accept-encoding": "identity",  # so that a few bytes cannot become a flood
            "user-agent": f"hiboss/{__version__}",
            **signed(_key(self._secret), turn.delivery, clock.now() // 1000, body),
        }
        # Importing httpx and reading the certificates takes too long for everybody's loop.
        client = await asyncio.to_thread(_client, self._url.startswith("https:"))
        import httpx

        try:
            async with client, client.stream("POST", self._url, content=body, headers=headers) as response:
                _check(response, self._place)
                return await _heard(response, turn.output_bytes, on_progress)
        except httpx.TimeoutException:
            raise LaneError("unreachable", f"{self._place} did not take a connection in time") from None
        except httpx.ConnectError as error:
            raise LaneError("unreachable", f"{self._place} cannot be reached: {error}"[:500]) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            # In their own words there may be what the other side said, and so what we asked.
            why = f"the connection to {self._place} broke off before there was an answer"
            raise LaneError("unreachable", why) from None


# --- the request -------------------------------------------------------------------------


def request_body(turn: TurnInput) -> bytes:
    """What is posted."""
    return orjson.dumps(
        {
            "type": "turn",
            "run": turn.run,
            "agent": turn.agent,
            "now": clock.iso(turn.now),
            "timezone": turn.timezone,
            "text": turn.text,
            "envelopes": [dict(one) for one in turn.envelopes],
        }
    )


def signed(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """The three headers by which the receiver knows that it came from here, whole and just now."""
    content = f"{delivery}.{seconds}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }


def _key(secret: Any) -> bytes:
    try:
        key = base64.b64decode(str(secret or "").removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise LaneError("no_secret", "the secret to sign with is missing or damaged; set the provider again")
    return key


def _client(secure: bool) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        verify=secure,  # reading certificates takes 20 ms that plain HTTP need not pay
        trust_env=False,  # a proxy of somebody's shell is not ours
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
    )


# --- the address -------------------------------------------------------------------------


def _check_url(url: str) -> None:
    if len(url) > LONGEST_URL:
        raise Refused(f"the address is longer than {LONGEST_URL} characters")
    if not _WRITABLE.fullmatch(url) or "\\" in url:
        raise Refused("an address has only plain ASCII letters and signs; others are written like %C3%A4")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Refused(f"this is no address: {error}") from None
    if parts.scheme not in ("https", "http"):
        raise Refused("an address begins with https:// (or http:// for a server on this machine)")
    if "@" in parts.netloc:
        raise Refused(
            "no user or password in the address: it would lie in the database. Let the server check the "
            "signature instead"
        )
    if "#" in url:
        raise Refused("an address has no #: a server never gets to see what comes after it")
    if port == 0 or not (_HOST.fullmatch(host) or _ip(host)):
        raise Refused("this is no address of a server, like https://example.org/turns")
    if parts.scheme == "http" and not _on_this_machine(host):
        raise Refused("http is for a server on this machine only (127.0.0.1, ::1, localhost); use https")


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _on_this_machine(host: str) -> bool:
    address = _ip(host)
    return host == "localhost" if address is None else address.is_loopback


def _place(parts: SplitResult) -> str:
    """The server, without path and query: these may be secrets."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


# --- the answer --------------------------------------------------------------------------


def _check(response: httpx.Response, place: str) -> None:
    """Raise for an answer that is none."""
    status = response.status_code
    if 200 <= status < 300:
        return
    said = f"{place} answered {status}{_phrase(status)}"
    if 300 <= status < 400:
        raise LaneError("redirected", f"{said}; redirects are not followed, so give the final address")
    if status in _LANE:
        kind, hint = _LANE[status]
        raise LaneError(kind, f"{said}; {hint}", _pause(response) if status == 429 else None)
    if 400 <= status < 500:
        raise TurnError("rejected", said)
    raise LaneError("server_error", said, _pause(response) if status == 503 else None)


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _pause(response: httpx.Response) -> float | None:
    """The seconds of Retry-After, which is a number or a date."""
    said = response.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return min(float(said[:12]), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(said)
    except (ValueError, TypeError, OverflowError):
        return None
    left = clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - clock.now()
    return min(max(left / 1000, 0.0), LONGEST_PAUSE)


async def _heard(response: httpx.Response, limit: int, on_progress: OnProgress) -> Answer:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise TurnError("bad_answer", "it answered in a compressed form, which it was not asked to")
    is_json = _media_type(response) == "application/json"
    on_progress(Progress("alive"))
    body, shown = bytearray(), codecs.getincrementaldecoder("utf-8")("replace")
    if int(response.headers.get("content-length", "0") or 0) > limit:
        raise _too_long(limit)
    async for part in response.aiter_raw():
        body += part
        if len(body) > limit:
            raise _too_long(limit)
        text = "" if is_json else shown.decode(part).replace("\x00", "\ufffd")
        on_progress(Progress("delta", text) if text else Progress("alive"))
    answer = _thought(bytes(body), is_json)
    if len(answer.text.encode()) > limit:  # what is no UTF-8 becomes longer
        raise _too_long(limit)
    return answer


def _media_type(response: httpx.Response) -> str:
    said: str = response.headers.get("content-type", "")
    return said.partition(";")[0].strip().lower()


def _too_long(limit: int) -> TurnError:
    return TurnError("too_long", f"it answered with more than {limit} bytes")


def _thought(body: bytes, is_json: bool) -> Answer:
    found = _object(body) if is_json else None
    text = _clean(body.decode("utf-8", "replace") if found is None else found["text"] or "")
    usage, ignored = _usage(found.get("usage") if found else None)
    notes = [f"its {name} is no number and was left out" for name in ignored]
    if "\ufffd" in text:
        notes.append("parts of its answer could not be kept as they are and were replaced")
    return Answer(text=text, note="; ".join(notes) or None, **usage)


def _object(body: bytes) -> dict[str, Any] | None:
    """An answer in JSON; None when it is something else, which is taken as it stands."""
    try:
        found = json.loads(body)  # more patient than orjson with what frameworks write
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and "text" in found and isinstance(found["text"], str | None):
        return found
    return None


def _clean(text: str) -> str:
    """A text that can be stored: without NUL and halves of characters; of blanks alone nothing is left."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\x00", "\ufffd") if whole.strip() else ""


def _usage(given: Any) -> tuple[dict[str, Any], list[str]]:
    """What it says to have used up, as far as it can be believed, and the names of the rest."""
    if given is None:
        return {}, []
    if not isinstance(given, dict):
        return {}, ["usage"]
    told = {name: given[name] for name in ("tokens_in", "tokens_out", "cost") if given.get(name) is not None}
    usage = {name: value for name, value in told.items() if _is_amount(value, whole=name != "cost")}
    return usage, [name for name in told if name not in usage]


def _is_amount(value: Any, *, whole: bool) -> bool:
    kinds = int if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value < 2**53

"""The webhook provider: each turn is one signed POST to a server, and the response is the agent's answer.

It is signed as the Standard Webhooks specification says, so that existing libraries can verify it. The
secret is kept in the home's directory of secrets, never in the settings, the database or an error.
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
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, urlsplit

import orjson
from pydantic import Field, SecretStr, field_validator

from ... import __version__
from ...core import clock
from ...core.contracts.failures import LaneError, TurnError
from ...core.contracts.provider import (
    COST,
    SESSION,
    Answer,
    LiveRun,
    Progress,
    Provider,
    TurnInput,
    is_session,
    storable_text,
)
from ...core.option_models import Options
from ...core.quoting import shortened

if TYPE_CHECKING:
    import httpx

PREFIX = "whsec_"
SECRET_BYTES = 32
LONGEST_URL = 2_000
JSON_BYTES = 64 * 1024  # of an answer in JSON, besides its text
CONNECT_SECONDS = 10.0
LONGEST_PAUSE = 24 * 3600.0  # seconds; a longer Retry-After is cut to this
_WRITABLE = re.compile(r"[!-~]+")  # printable ASCII, no spaces
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_LANE_STATUSES = {  # every turn would get the same response
    401: ("refused", "check the secret on the server"),
    402: ("refused", "check the account on the server"),
    403: ("refused", "check the secret on the server"),
    404: ("not_found", "check the address"),
    405: ("not_found", "check the address: it does not take POST"),
    408: ("unreachable", "it did not get the turn in time"),
    410: ("not_found", "check the address"),
    425: ("server_error", "it is not ready yet"),
    429: ("rate_limited", "it gets too many requests"),
}


def new_secret() -> str:
    """Make a secret to sign with. The receiver needs the same one."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class WebhookSettings(Options):
    url: str = Field(description="where turns are sent: https, or http on this machine")
    secret: SecretStr = Field(
        default_factory=lambda: SecretStr(new_secret()),
        description="signs the requests; hiboss makes one and shows it once",
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if not url.strip():
            raise ValueError("give an address, like https://example.org/turns")
        _check_url(url.strip())
        return url.strip()


class Webhook(Provider):
    """Posts each turn to one address and takes the response as the answer."""

    name: ClassVar[str] = "webhook"
    summary: ClassVar[str] = "a web server of yours"
    Settings = WebhookSettings
    session_settings = frozenset({"url"})
    capabilities = frozenset({SESSION, COST})

    def __init__(self, settings: WebhookSettings) -> None:
        super().__init__(settings)
        self._url = settings.url
        self._server = _server_name(urlsplit(self._url))

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        body = request_body(turn)
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/plain",
            "accept-encoding": "identity",  # a small compressed response could become a huge one
            "user-agent": f"hiboss/{__version__}",
            **signed(_key(self.settings.secret), turn.delivery, clock.now() // 1000, body),
        }
        # In a thread: importing httpx and reading the certificates would block the event loop.
        client = await asyncio.to_thread(_client, self._url.startswith("https:"))
        import httpx

        try:
            async with client, client.stream("POST", self._url, content=body, headers=headers) as response:
                _check(response, self._server)
                return await _read_answer(response, turn, run)
        except httpx.TimeoutException:
            raise LaneError("unreachable", f"{self._server} did not accept the connection in time") from None
        except httpx.ConnectError as error:
            raise LaneError(
                "unreachable", shortened(f"{self._server} cannot be reached: {error}", 500)
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError):
            # Their own texts are not used: they may quote the response, and so the request.
            why = f"the connection to {self._server} was lost before there was an answer"
            raise LaneError("unreachable", why) from None


# --- the request -------------------------------------------------------------------------


def request_body(turn: TurnInput) -> bytes:
    """Return the body of the request, in JSON."""
    return orjson.dumps(
        {
            "type": "turn",
            "run": turn.run,
            "agent": turn.agent,
            "now": clock.iso(turn.now),
            "timezone": turn.timezone,
            "session": turn.session,
            "text": turn.text,
            "envelopes": [dict(one) for one in turn.envelopes],
        }
    )


def signed(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the three headers that prove sender, content and time to the receiver."""
    content = f"{delivery}.{seconds}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }


def _key(secret: SecretStr) -> bytes:
    try:
        key = base64.b64decode(secret.get_secret_value().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise LaneError(
            "no_secret",
            "the secret to sign with is missing or damaged; set the provider again "
            "(hiboss agent set NAME --provider webhook --url URL)",
        )
    return key


def _client(secure: bool) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        verify=secure,  # reading certificates takes 20 ms, which plain HTTP does not need
        trust_env=False,  # proxy settings of the shell that started the daemon do not apply
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
    )


# --- the address -------------------------------------------------------------------------


def _check_url(url: str) -> None:
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


def _server_name(parts: SplitResult) -> str:
    """Return scheme and host for errors and logs; the path and the query may contain secrets."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


# --- the answer --------------------------------------------------------------------------


def _check(response: httpx.Response, server: str) -> None:
    """Raise for a response that is not a success."""
    status = response.status_code
    if 200 <= status < 300:
        return
    what = f"{server} answered {status}{_phrase(status)}"
    if 300 <= status < 400:
        raise LaneError("redirected", f"{what}; redirects are not followed, so set the final address")
    if status in _LANE_STATUSES:
        kind, hint = _LANE_STATUSES[status]
        raise LaneError(kind, f"{what}; {hint}", _retry_after(response) if status == 429 else None)
    if 400 <= status < 500:
        raise TurnError("rejected", what)
    raise LaneError("server_error", what, _retry_after(response) if status == 503 else None)


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of the header Retry-After, which is a number or a date."""
    value = response.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), LONGEST_PAUSE)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    left = clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - clock.now()
    return min(max(left / 1000, 0.0), LONGEST_PAUSE)


async def _read_answer(response: httpx.Response, turn: TurnInput, run: LiveRun) -> Answer:
    """Read the response, report it as progress, and return the answer."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise TurnError("bad_answer", "it answered in a compressed form, which is not supported")
    is_json, limit = _media_type(response) == "application/json", turn.answer_bytes
    # JSON may take 6 bytes for a character, and has more in it than the text.
    most = min(6 * limit + JSON_BYTES, max(turn.output_bytes, limit)) if is_json else limit
    run.progress(Progress("alive"))
    body, decoder = bytearray(), codecs.getincrementaldecoder("utf-8")("replace")
    if int(response.headers.get("content-length", "0") or 0) > most:
        raise _too_long(limit)
    async for part in response.aiter_raw():
        body += part
        if len(body) > most:
            raise _too_long(limit)
        text = "" if is_json else decoder.decode(part).replace("\x00", "\ufffd")
        run.progress(Progress("delta", text) if text else Progress("alive"))
    answer, session = _parse_answer(bytes(body), is_json)
    if len(answer.text.encode()) > limit:  # replacing invalid UTF-8 makes it longer
        raise _too_long(limit)
    if session is not None:
        await run.session(session)
    return answer


def _media_type(response: httpx.Response) -> str:
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


def _too_long(limit: int) -> TurnError:
    return TurnError("too_long", f"it answered with more than {limit} bytes")


def _parse_answer(body: bytes, is_json: bool) -> tuple[Answer, str | None]:
    """Return the answer, and the id of the session it names."""
    found = _object(body) if is_json else None
    text = _clean(body.decode("utf-8", "replace") if found is None else found["text"] or "")
    usage, ignored = _usage(found.get("usage") if found else None)
    notes = [f"its {name} is not a number and was left out" for name in ignored]
    session = (found or {}).get("session")
    if session is not None and not is_session(session):
        session = None
        notes.append("its session is not a text that can be stored and was left out")
    return Answer(text=text, note="; ".join(notes) or None, **usage), session


def _object(body: bytes) -> dict[str, Any] | None:
    """Parse an answer in JSON; None for anything else, which is then taken as plain text."""
    try:
        found = json.loads(
            body
        )  # not orjson: this one also takes NaN and lone surrogates, which some frameworks write
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and "text" in found and isinstance(found["text"], str | None):
        return found
    return None


def _clean(text: str) -> str:
    """Replace what cannot be stored (NUL, half surrogate pairs). Only white space becomes an empty text."""
    return storable_text(text) if text.strip() else ""


def _usage(given: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the valid numbers of `usage`, and the names of the invalid ones."""
    if given is None:
        return {}, []
    if not isinstance(given, dict):
        return {}, ["usage"]
    values = {
        name: given[name] for name in ("tokens_in", "tokens_out", "cost") if given.get(name) is not None
    }
    usage = {name: value for name, value in values.items() if _is_amount(value, whole=name != "cost")}
    return usage, [name for name in values if name not in usage]


def _is_amount(value: Any, *, whole: bool) -> bool:
    kinds = int if whole else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value < 2**53

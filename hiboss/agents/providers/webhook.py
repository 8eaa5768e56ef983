"""The webhook provider: each turn is one signed POST to a server, and the response is the agent's answer.

It is signed as the Standard Webhooks specification says, so that existing libraries can verify it. The
secret is kept in the home's directory of secrets, never in the settings, the database or an error.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from typing import TYPE_CHECKING, Any, ClassVar

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
from ...core.server_urls import check_url, phrase, retry_after, server_name
from ...core.webhook_signatures import key_of, new_secret, signed

if TYPE_CHECKING:
    import httpx

JSON_BYTES = 64 * 1024  # of an answer in JSON, besides its text
CONNECT_SECONDS = 10.0
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
        check_url(url.strip())
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
        self._server = server_name(self._url)

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


def _key(secret: SecretStr) -> bytes:
    key = key_of(secret.get_secret_value())
    if key is None:
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


# --- the answer --------------------------------------------------------------------------


def _check(response: httpx.Response, server: str) -> None:
    """Raise for a response that is not a success."""
    status = response.status_code
    if 200 <= status < 300:
        return
    what = f"{server} answered {status}{phrase(status)}"
    if 300 <= status < 400:
        raise LaneError("redirected", f"{what}; redirects are not followed, so set the final address")
    later = retry_after(response.headers.get("retry-after", "")) if status in (429, 503) else None
    if status in _LANE_STATUSES:
        kind, hint = _LANE_STATUSES[status]
        raise LaneError(kind, f"{what}; {hint}", later)
    if 400 <= status < 500:
        raise TurnError("rejected", what)
    raise LaneError("server_error", what, later)


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

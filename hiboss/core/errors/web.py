"""Errors of the HTTP door: requests that never reach an operation, and logins of people."""

from __future__ import annotations

from .base import HibossError

# --- where a request comes from --------------------------------------------------------


class WrongHost(HibossError):
    """{host} is not a name of this daemon; use 127.0.0.1 or localhost, or add the name to the setting {setting}"""

    code, rpc, http = "wrong_host", -32003, 421


class WrongOrigin(HibossError):
    """a page of {origin} may not use this daemon; only its own pages may"""

    code, rpc, http = "wrong_origin", -32003, 403


class NoOrigin(HibossError):
    """a request that has a cookie and changes something must also have an Origin header; programs send a token: Authorization: Bearer …"""

    code, rpc, http = "no_origin", -32003, 403


# --- the form of a request -------------------------------------------------------------


class NotHttp(HibossError):
    """this is not a request that HTTP/1.1 allows: {detail}"""

    code, rpc, http = "not_http", -32600, 400


class NoSuchPath(HibossError):
    """there is nothing at {path}; GET /openapi.json lists what there is"""

    code, rpc, http = "no_such_path", -32601, 404


class MethodNotAllowed(HibossError):
    """{path} does not take {method}; it takes {allowed}"""

    code, rpc, http = "method_not_allowed", -32601, 405


class WrongContentType(HibossError):
    """the body is {given}, and must be {wanted}; say so in Content-Type"""

    code, rpc, http = "wrong_content_type", -32600, 415


class TokenInUrl(HibossError):
    """a token must not be in a URL, where logs and histories keep it; send it as Authorization: Bearer, and rotate this one"""

    code, rpc, http = "token_in_url", -32602, 400


class KeyNotTaken(HibossError):
    """{path} takes no Idempotency-Key, because it sends nothing; leave the header out"""

    code, rpc, http = "key_not_taken", -32602, 400


class BodyTooSlow(HibossError):
    """the body did not come within {seconds} seconds; nothing was stored"""

    code, rpc, http = "body_too_slow", -32600, 408


class NoSuchPart(HibossError):
    """the file has {size} bytes, and nothing of it is in the Range; leave the header out, or ask for a part of it"""

    code, rpc, http = "no_such_part", -32602, 416


# --- people who come with a browser ----------------------------------------------------


class LoginRefused(HibossError):
    """this link was used before, is too old, or was never given; run `hiboss web` for a new one"""

    code, rpc, http = "login_refused", -32001, 401


class TooManyAttempts(HibossError):
    """too many logins failed; try again in {seconds} seconds"""

    code, rpc, http = "too_many_attempts", -32001, 429


class WebUnavailable(HibossError):
    """hiboss does not serve HTTP now: {why}"""

    code, rpc, http = "web_unavailable", -32030, 503

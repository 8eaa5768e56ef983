"""Signatures of webhooks: what is signed right is accepted, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from hiboss.core.webhook_signatures import (
    TOLERANCE_SECONDS,
    check_secret,
    key_of,
    new_secret,
    signed,
    verified,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = key_of(SECRET) or b""
KEYS = (KEY, SECRET.encode())
NOW = 1_614_265_330_000
BODY = b'{"test": 2432232314}'
RIGHT = signed(KEY, "msg_1", NOW // 1000, BODY)


def github(body: bytes = BODY, secret: str = SECRET, **more: str) -> dict[str, str]:
    digest = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
    named = {"x-github-delivery": "d-1", "x-hub-signature-256": f"sha256={digest}"}
    return named | {name.replace("_", "-"): value for name, value in more.items()}


def test_a_right_signature_gives_the_id_of_the_request() -> None:
    assert verified(KEYS, RIGHT, BODY, NOW) == "msg_1"


def test_one_right_signature_among_several_is_enough() -> None:
    other = signed(b"x" * 32, "msg_1", NOW // 1000, BODY)["webhook-signature"]
    both = f"v1a,AAAA {other} {RIGHT['webhook-signature']}"
    assert verified(KEYS, RIGHT | {"webhook-signature": both}, BODY, NOW) == "msg_1"


@pytest.mark.parametrize("seconds", [-TOLERANCE_SECONDS, TOLERANCE_SECONDS])
def test_a_clock_may_differ_by_five_minutes(seconds: int) -> None:
    assert verified(KEYS, RIGHT, BODY, NOW + seconds * 1000) == "msg_1"
    assert verified(KEYS, RIGHT, BODY, NOW + (seconds + (1 if seconds > 0 else -1)) * 1000) is None


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-id": "msg 1"},
        {"webhook-id": "m" * 257},
        {"webhook-id": "msg_1\n"},
        {"webhook-timestamp": str(NOW // 1000 + 1)},
        {"webhook-timestamp": f"+{NOW // 1000}"},
        {"webhook-timestamp": f" {NOW // 1000}"},
        {"webhook-timestamp": "٣"},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-timestamp": "-1"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1"},
        {"webhook-signature": RIGHT["webhook-signature"].removeprefix("v1,")},
        {"webhook-signature": RIGHT["webhook-signature"].replace("v1,", "v2,")},
        {"webhook-signature": RIGHT["webhook-signature"][:-1]},
        {"webhook-signature": RIGHT["webhook-signature"] + "="},
        {"webhook-signature": "v1,ä"},
        {"webhook-signature": "v1,\ud800"},
        {"webhook-signature": "x " * 100_000 + RIGHT["webhook-signature"]},
    ],
)
def test_what_was_changed_is_refused(change: dict[str, str]) -> None:
    assert verified(KEYS, RIGHT | change, BODY, NOW) is None


@pytest.mark.parametrize("missing", list(RIGHT))
def test_each_header_is_needed(missing: str) -> None:
    assert verified(KEYS, {name: RIGHT[name] for name in RIGHT if name != missing}, BODY, NOW) is None


def test_another_body_and_another_key_are_refused() -> None:
    assert verified(KEYS, RIGHT, BODY + b" ", NOW) is None
    other = key_of(new_secret()) or b""
    assert verified((other, b"x"), RIGHT, BODY, NOW) is None
    assert verified(None, RIGHT, BODY, NOW) is None
    assert verified(None, github(), BODY, NOW) is None


def test_the_id_of_a_github_request_has_its_body_in_it() -> None:
    first = verified(KEYS, github(), BODY, NOW)
    assert first is not None and first.startswith("github:d-1:")
    assert verified(KEYS, github(b"other"), b"other", NOW) not in (None, first)
    assert verified(KEYS, github(x_github_delivery="d-2"), BODY, NOW) not in (None, first)
    # Its signature says nothing of a time: the same request is the same one next year.
    assert verified(KEYS, github(), BODY, NOW * 2) == first


def test_the_example_of_github_is_right() -> None:
    body, secret = b"Hello, World!", b"It's a Secret to Everybody"
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-github-delivery": "1", "x-hub-signature-256": f"sha256={digest}"}
    assert verified((b"x", secret), headers, body, NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"x-github-delivery": ""},
        {"x-github-delivery": "a b"},
        {"x-github-delivery": "d" * 300},
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha256="},
        {"x-hub-signature-256": "sha256=" + "0" * 64},
        {"x-hub-signature-256": "sha1=" + "0" * 40},
        {"x-hub-signature-256": github()["x-hub-signature-256"].upper()},
        {"webhook-signature": ""},  # then it must be right as a standard one
    ],
)
def test_what_github_did_not_send_is_refused(change: dict[str, str]) -> None:
    assert verified(KEYS, github() | change, BODY, NOW) is None


def test_a_new_secret_can_be_used_and_no_two_are_the_same() -> None:
    assert len({check_secret(new_secret()) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_!!!",
        base64.b64encode(b"x" * 32).decode(),
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsec_ä",
    ],
)
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes"):
        check_secret(secret)

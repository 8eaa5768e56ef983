"""Bad input of the operations about webhooks (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.api.bad_input_row import BAD_ADDRESSES, LONG, NOBODYS_NAMES, NUL, Row, row

BAD_NAMES = ("", " ", "CI", "a_b", "a b", "-a", "a-", "a--b", "a:b", "a/b", "../x", "ä", "x" * 65, NUL, LONG)
BAD_URLS = (
    "",
    "x",
    "example.org/x",
    "ftp://example.org/",
    "http://example.org/",
    "https://nex:word@example.org/",
    "https://example.org/#x",
    "https://exa mple.org/",
    "https:///x",
    "https://example.org:0/",
    "https://example.org/" + "x" * 2_000,
)
BAD_TEMPLATES = {
    "{": "write {{",
    "a } b": "write }}",
    "{}": "names no field",
    "{a..b}": "names no field",
    "{ a}": "names no field",
    "{@headers.authorization}": "there is no field @headers.authorization",
    "{@nonsense}": "@body",
    "{a}" * 201: "at most 200 fields",
}
CREATE: dict[str, Any] = {"name": "fresh", "to": "agent:ada"}
SUBSCRIBE = {"name": "fresh", "url": "https://example.org/x"}


def webhooks() -> Iterator[Row]:
    for part in (_names, _creating, _subscribing, _changing):
        yield from part()


def _names() -> Iterator[Row]:
    for value in BAD_NAMES:
        for name, base in (("webhook.create", CREATE), ("webhook.subscribe", SUBSCRIBE)):
            yield row(name, {**base, "name": value}, "invalid_params", "name of a webhook|small letters")
    for name, base in (("webhook.create", CREATE), ("webhook.subscribe", SUBSCRIBE)):
        for taken in ("scene-hook", "scene-out"):
            yield row(name, {**base, "name": taken}, "webhook_taken", f"{taken}|webhook set")
    for verb, more in (
        ("get", {}),
        ("rotate", {}),
        ("delete", {}),
        ("unsubscribe", {}),
        ("set", {"to": "ada"}),
    ):
        for value in ("", "nothing", "CI", "channel:webhook:scene-hook", NUL, LONG):
            yield row(f"webhook.{verb}", {"name": value, **more}, "unknown_webhook", "webhook list")
    near = {"name": "scene-hok"}
    yield row("webhook.get", near, "unknown_webhook", "scene-hok |scene-hook?", "webhook show scene-hok")
    wrong = {"name": "scene-out"}
    yield row(
        "webhook.delete", wrong, "invalid_params", "out|webhook.unsubscribe", "webhook delete scene-out --yes"
    )
    yield row(
        "webhook.unsubscribe",
        {"name": "scene-hook"},
        "invalid_params",
        "in|webhook.delete",
        "webhook unsubscribe scene-hook --yes",
    )
    yield row("webhook.rotate", near, "unknown_webhook", "scene-hok", "webhook rotate scene-hok")
    yield row("webhook.list", {}, "forbidden", "webhook.list", "webhook list", by="nex")


def _creating() -> Iterator[Row]:
    name = "webhook.create"
    for value in BAD_ADDRESSES:
        yield row(name, {**CREATE, "to": value}, "bad_address", "is not a valid address|agent:nex")
    for value in NOBODYS_NAMES:
        yield row(name, {**CREATE, "to": value}, "unknown_address", value)
    for value in ("agent:nobody-here", "agent:gone"):
        yield row(name, {**CREATE, "to": value}, "unknown_agent", "agent list")
    for value in ("user:ann", "boss", "channel:folder:box"):
        yield row(name, {**CREATE, "to": value}, "invalid_params", "for an agent")
    for text, says in BAD_TEMPLATES.items():
        yield row(name, {**CREATE, "template": text}, "invalid_params", f"--template|{says}")
        yield row(name, {**CREATE, "subject": text}, "invalid_params", f"--subject|{says}")
    command = "webhook create fresh --to ada --template {"
    yield row(name, {**CREATE, "template": "{"}, "invalid_params", "--template", command)


def _subscribing() -> Iterator[Row]:
    name = "webhook.subscribe"
    for url in BAD_URLS:
        yield row(name, {**SUBSCRIBE, "url": url}, "invalid_params", "--url")
    for topic in ("", "nonsense", "run.progress", "presence.typing", "RUN.ENDED"):
        yield row(name, {**SUBSCRIBE, "topics": [topic]}, "invalid_params", "topics")
    for value in BAD_ADDRESSES:
        yield row(name, {**SUBSCRIBE, "addresses": [value]}, "bad_address", "is not a valid address")
    for value in ("adda", "agent:nobody-here"):
        yield row(name, {**SUBSCRIBE, "addresses": ["ada", value]}, "unknown_address", value)
    yield row(name, {**SUBSCRIBE, "addresses": ["ada"] * 101}, "invalid_params", "addresses|100")
    command = "webhook subscribe fresh --url http://example.org/ --topic run.ended"
    yield row(name, {**SUBSCRIBE, "url": "http://example.org/"}, "invalid_params", "this machine", command)


def _changing() -> Iterator[Row]:
    name = "webhook.set"
    yield row(name, {"name": "scene-hook"}, "invalid_params", "nothing to change", "webhook set scene-hook")
    for more in ({"url": "https://example.org/"}, {"topics": []}, {"addresses": []}):
        yield row(name, {"name": "scene-hook", **more}, "invalid_params", "receives|template")
    for given in ({"to": "ada"}, {"template": "x"}, {"subject": "x"}):
        yield row(name, {"name": "scene-out", **given}, "invalid_params", "posts facts|url")
    yield row(name, {"name": "scene-out", "url": ""}, "invalid_params", "url")
    yield row(name, {"name": "scene-hook", "to": "x:y"}, "bad_address", "x:y")
    yield row(name, {"name": "scene-hook", "to": "adda"}, "unknown_address", "adda|ada?")
    yield row(name, {"name": "scene-hook", "to": "agent:gone"}, "unknown_agent", "gone")
    for text, says in BAD_TEMPLATES.items():
        yield row(name, {"name": "scene-hook", "template": text}, "invalid_params", f"--template|{says}")

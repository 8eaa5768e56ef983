"""Bad input of the operations about webhooks, facts that are followed, and news of a conversation (`bad_input.py`)."""

from __future__ import annotations

from typing import Any

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    row,
)

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

NAMES = [
    *[
        row(name, {**base, "name": value}, "invalid_params", "name of a webhook|small letters")
        for value in BAD_NAMES
        for name, base in (("webhook.create", CREATE), ("webhook.subscribe", SUBSCRIBE))
    ],
    *[
        row(name, {**base, "name": taken}, "webhook_taken", f"{taken}|webhook set")
        for name, base in (("webhook.create", CREATE), ("webhook.subscribe", SUBSCRIBE))
        for taken in ("scene-hook", "scene-out")
    ],
    *[
        row(f"webhook.{verb}", {"name": value, **more}, "unknown_webhook", "webhook list")
        for verb, more in (
            ("get", {}),
            ("rotate", {}),
            ("delete", {}),
            ("unsubscribe", {}),
            ("set", {"to": "ada"}),
        )
        for value in ("", "nothing", "CI", "channel:webhook:scene-hook", NUL, LONG)
    ],
    row(
        "webhook.get",
        {"name": "scene-hok"},
        "unknown_webhook",
        "scene-hok |scene-hook?",
        "webhook show scene-hok",
    ),
    row(
        "webhook.delete",
        {"name": "scene-out"},
        "invalid_params",
        "out|webhook.unsubscribe",
        "webhook delete scene-out --yes",
    ),
    row(
        "webhook.unsubscribe",
        {"name": "scene-hook"},
        "invalid_params",
        "in|webhook.delete",
        "webhook unsubscribe scene-hook --yes",
    ),
    row("webhook.rotate", {"name": "scene-hok"}, "unknown_webhook", "scene-hok", "webhook rotate scene-hok"),
    row("webhook.list", {}, "forbidden", "webhook.list", "webhook list", by="nex"),
]

CREATING = [
    *[
        row("webhook.create", {**CREATE, "to": value}, "bad_address", "is not a valid address|agent:nex")
        for value in BAD_ADDRESSES
    ],
    *[row("webhook.create", {**CREATE, "to": value}, "unknown_address", value) for value in NOBODYS_NAMES],
    *[
        row("webhook.create", {**CREATE, "to": value}, "unknown_agent", "agent list")
        for value in ("agent:nobody-here", "agent:gone")
    ],
    *[
        row("webhook.create", {**CREATE, "to": value}, "invalid_params", "for an agent")
        for value in ("user:ann", "boss", "channel:folder:box")
    ],
    *[
        each
        for text, says in BAD_TEMPLATES.items()
        for each in [
            row("webhook.create", {**CREATE, "template": text}, "invalid_params", f"--template|{says}"),
            row("webhook.create", {**CREATE, "subject": text}, "invalid_params", f"--subject|{says}"),
        ]
    ],
    row(
        "webhook.create",
        {**CREATE, "template": "{"},
        "invalid_params",
        "--template",
        "webhook create fresh --to ada --template {",
    ),
]

SUBSCRIBING = [
    *[row("webhook.subscribe", {**SUBSCRIBE, "url": url}, "invalid_params", "--url") for url in BAD_URLS],
    *[
        row("webhook.subscribe", {**SUBSCRIBE, "topics": [topic]}, "invalid_params", "topics")
        for topic in ("", "nonsense", "run.progress", "presence.typing", "RUN.ENDED")
    ],
    *[
        row("webhook.subscribe", {**SUBSCRIBE, "addresses": [value]}, "bad_address", "is not a valid address")
        for value in BAD_ADDRESSES
    ],
    *[
        row("webhook.subscribe", {**SUBSCRIBE, "addresses": ["ada", value]}, "unknown_address", value)
        for value in ("adda", "agent:nobody-here")
    ],
    row("webhook.subscribe", {**SUBSCRIBE, "addresses": ["ada"] * 101}, "invalid_params", "addresses|100"),
    row(
        "webhook.subscribe",
        {**SUBSCRIBE, "url": "http://example.org/"},
        "invalid_params",
        "this machine",
        "webhook subscribe fresh --url http://example.org/ --topic run.ended",
    ),
]

CHANGING = [
    row(
        "webhook.set", {"name": "scene-hook"}, "invalid_params", "nothing to change", "webhook set scene-hook"
    ),
    *[
        row("webhook.set", {"name": "scene-hook", **more}, "invalid_params", "receives|template")
        for more in ({"url": "https://example.org/"}, {"topics": []}, {"addresses": []})
    ],
    *[
        row("webhook.set", {"name": "scene-out", **given}, "invalid_params", "posts facts|url")
        for given in ({"to": "ada"}, {"template": "x"}, {"subject": "x"})
    ],
    row("webhook.set", {"name": "scene-out", "url": ""}, "invalid_params", "url"),
    row("webhook.set", {"name": "scene-hook", "to": "x:y"}, "bad_address", "x:y"),
    row("webhook.set", {"name": "scene-hook", "to": "adda"}, "unknown_address", "adda|ada?"),
    row("webhook.set", {"name": "scene-hook", "to": "agent:gone"}, "unknown_agent", "gone"),
    *[
        row("webhook.set", {"name": "scene-hook", "template": text}, "invalid_params", f"--template|{says}")
        for text, says in BAD_TEMPLATES.items()
    ],
]

CONVERSATIONS = [
    *[
        each
        for verb in ("messages", "news")
        for each in [
            *[
                each
                for value in BAD_ADDRESSES
                for each in [
                    row(
                        f"conversation.{verb}",
                        {**RIGHT[f"conversation.{verb}"], "with": value},
                        "bad_address",
                        "is not a valid address|agent:nex",
                    ),
                    row(
                        f"conversation.{verb}",
                        {**RIGHT[f"conversation.{verb}"], "address": value},
                        "bad_address",
                        "is not a valid address|agent:nex",
                    ),
                ]
            ],
            *[
                each
                for value in NOBODYS_NAMES
                for each in [
                    row(
                        f"conversation.{verb}",
                        {**RIGHT[f"conversation.{verb}"], "with": value},
                        "unknown_address",
                        value,
                    ),
                    row(
                        f"conversation.{verb}",
                        {**RIGHT[f"conversation.{verb}"], "address": value},
                        "unknown_address",
                        value,
                    ),
                ]
            ],
            row(
                f"conversation.{verb}",
                {**RIGHT[f"conversation.{verb}"], "with": "agent:adda"},
                "unknown_address",
                "agent:ada?",
            ),
            # who left has a history
            *[
                row(
                    f"conversation.{verb}",
                    {**RIGHT[f"conversation.{verb}"], "with": value},
                    "unknown_address",
                    value,
                )
                for value in ("user:nobody-here", "channel:telegram:1")
            ],
            row(
                f"conversation.{verb}",
                {**RIGHT[f"conversation.{verb}"], "address": "user:boss"},
                "boss_only",
                "address|agent:nex",
            ),
            row(
                f"conversation.{verb}",
                {**RIGHT[f"conversation.{verb}"], "address": "agent:nobody-here"},
                "unknown_address",
                "nobody-here",
                by="boss",
            ),
        ]
    ],
    *[
        row(
            "conversation.messages",
            {**RIGHT["conversation.messages"], "page_size": size},
            "invalid_params",
            f"page_size|{size}|1 to 100",
        )
        for size in (0, -1, 101, 2**31, 2**63)
    ],
    *[
        row(
            "conversation.messages",
            {**RIGHT["conversation.messages"], "before": number},
            "invalid_params",
            "before",
        )
        for number in (-1, -(2**63), 2**63, 2**64, 0.5)
    ],
]

NEWS = [
    *[
        row(
            "conversation.news",
            {**RIGHT["conversation.news"], "run": value},
            "bad_id" if isinstance(value, str) else "invalid_params",
            "run",
        )
        for value in BAD_IDS
    ],
    row("conversation.news", {**RIGHT["conversation.news"], "run": "e1"}, "bad_id", "e1|r81"),
    *[
        row("conversation.news", {**RIGHT["conversation.news"], "after": number}, "invalid_params", "after")
        for number in (-1, -(2**63), 2**63, 2**64, 0.5)
    ],
    *[
        row("conversation.news", {**RIGHT["conversation.news"], "parts": number}, "invalid_params", "parts")
        for number in (-1, -(2**63), 2**64, 0.5)
    ],
]

# Facts: whose, in which conversations, from where on.
FOLLOWING = [
    *[
        each
        for by in ("nex", "boss")
        for each in [
            *[
                row(
                    "event.subscribe",
                    {"addresses": [value]},
                    "bad_address",
                    "is not a valid address|agent:nex",
                    by=by,
                )
                for value in BAD_ADDRESSES
            ],
            *[
                row("event.subscribe", {"addresses": [value]}, "unknown_address", value, by=by)
                for value in NOBODYS_NAMES
            ],
        ]
    ],
    *[
        row("event.subscribe", {"addresses": ["agent:nex", value]}, "boss_only", "addresses")
        for value in ("agent:ada", "ada", "user:boss")
    ],
    *[
        row("event.subscribe", {"conversations": [value]}, "bad_id", "c81")
        for value in BAD_IDS
        if isinstance(value, str)
    ],
    row("event.subscribe", {"conversations": ["c999999"]}, "not_found", "conversation|c999999"),
    row("event.subscribe", {"topics": ["envelope.lost"]}, "invalid_params", "topics"),
    row("event.unsubscribe", {"subscription": "1"}, "invalid_params", "subscription"),
]

ROWS = [*NAMES, *CREATING, *SUBSCRIBING, *CHANGING, *CONVERSATIONS, *NEWS, *FOLLOWING]

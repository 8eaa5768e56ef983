"""Bad input of the operations about delivery: claims, retries, lanes and bindings (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import (
    BAD_ADDRESSES,
    BAD_IDS,
    BAD_LENGTHS,
    ENDLESS,
    LONG,
    NOBODYS_NAMES,
    NUL,
    RIGHT,
    Row,
    row,
    shown,
)

STEERING = ("retry", "pause", "resume")
FOLDER = {"name": "spare", "adapter_type": "folder"}


def delivery() -> Iterator[Row]:
    for part in (_claims, _releases, _retries, _lanes, _binds, _unbinds):
        yield from part()


def _claims() -> Iterator[Row]:
    name, command = "envelope.claim", "envelope claim"
    for value in BAD_LENGTHS:
        yield row(name, {"lease": value}, "bad_duration", f"{shown(value)} is not a valid duration|90s, 10m")
    yield row(name, {"lease": "soon"}, "bad_duration", "soon|90s, 10m", f"{command} --lease soon")
    for value in ("0s", "0h0m", "0.000s"):
        yield row(name, {"lease": value}, "bad_duration", f"{value}|zero", f"{command} --lease {value}")
    for value in ("25h", "999999h", "86401s"):
        yield row(name, {"lease": value}, "bad_duration", f"{value}|at most 24h")
    for number in (0, -1, 101, 2**31, 2**63):
        yield row(name, {"limit": number}, "invalid_params", f"limit|{number}|1 to 100")
    for number in (0, -5, 1000):
        yield row(
            name, {"limit": number}, "invalid_params", f"-n|{number}|1 to 100", f"{command} -n {number}"
        )
    for value in BAD_ADDRESSES:
        yield row(name, {"address": value}, "bad_address", "is not a valid address|agent:nex")
    for value in NOBODYS_NAMES:
        yield row(name, {"address": value}, "unknown_address", value)
    yield row(
        name, {"address": "user:boss"}, "boss_only", "address|agent:nex", f"{command} --address user:boss"
    )
    nobody = {"address": "agent:nobody-here"}
    yield row(
        name, nobody, "unknown_address", "nobody-here", f"{command} --address agent:nobody-here", by="boss"
    )
    # Nothing was taken in hand on the way to the refusal.
    yield row(name, {"limit": 5, "lease": "soon", "address": "agent:nex"}, "bad_duration", "soon", by="boss")


def _releases() -> Iterator[Row]:
    name, command = "envelope.release", "envelope release --id"
    for value in BAD_IDS:
        yield row(name, {"ids": ["%claimed", value]}, "bad_id", f"{shown(value)} is not a valid |e81")
    for value in BAD_ADDRESSES:
        yield row(
            name, {"ids": ["%claimed"], "address": value}, "bad_address", "is not a valid address|agent:nex"
        )
    for value in NOBODYS_NAMES:
        yield row(name, {"ids": ["%claimed"], "address": value}, "unknown_address", value)
    yield row(name, {"ids": ["%claimed", "x"]}, "bad_id", "x|e81", f"{command} %claimed --id x")
    wrong = {"ids": ["%claimed"], "claim": "e1"}
    yield row(name, wrong, "bad_id", "e1 is not a valid claim|k81", f"{command} %claimed --claim e1")
    stale = {"ids": ["%claimed"], "claim": "k999999"}
    yield row(name, stale, "too_late", "%claimed|another session", f"{command} %claimed --claim k999999")
    for value in ("%others", "%deferred", "e999999", "%sent"):
        yield row(name, {"ids": ["%claimed", value]}, "not_found", value)
    yield row(name, {"ids": ["%others"]}, "not_found", "%others", f"{command} %others")
    for value, state in (("%pending", "not claimed"), ("%own", "done"), ("%cancelled", "cancelled")):
        # All of it or nothing: the claimed one stays claimed.
        yield row(name, {"ids": ["%claimed", value]}, "too_late", f"{value}|{state}")
    yield row(name, {"ids": ["%held"]}, "too_late", "%held")
    yield row(name, {"ids": ["%pending"]}, "too_late", "%pending|released", f"{command} %pending")
    yield row(name, {"ids": ["%claimed"], "address": "user:boss"}, "boss_only", "address")
    yield row(name, {"ids": ["%claimed"], "address": "agent:ada"}, "not_found", "%claimed", by="boss")
    nobody = {"ids": ["%claimed"], "address": "agent:nobody-here"}
    yield row(name, nobody, "unknown_address", "agent:nobody-here", by="boss")


def _retries() -> Iterator[Row]:
    name, command = "envelope.retry", "envelope retry --id"
    for value in BAD_IDS:
        yield row(name, {"ids": ["%failed", value]}, "bad_id", f"{shown(value)} is not a valid |e81")
    yield row(name, {"ids": ["%failed", "x"]}, "bad_id", "x|e81", f"{command} %failed --id x")
    for value in ("%others", "%pending", "%deferred", "e999999"):  # others sent these
        yield row(name, {"ids": ["%failed", value]}, "not_found", value)
    yield row(name, {"ids": ["%others"]}, "not_found", "%others", f"{command} %others")
    for value, state in (("%sent", "pending"), ("%own", "done"), ("%lost", "agent:left|no longer exists")):
        yield row(name, {"ids": ["%failed", value]}, "too_late", f"{value}|retried|{state}")
    yield row(name, {"ids": ["%sent"]}, "too_late", "%sent|pending", f"{command} %sent")


def _lanes() -> Iterator[Row]:
    for verb in STEERING:
        name, command = f"lane.{verb}", f"lane {verb} --address"
        for value in BAD_ADDRESSES:
            yield row(name, {"address": value}, "bad_address", "is not a valid address|agent:nex")
        yield row(name, {"address": "x:y"}, "bad_address", "x:y is not a valid address", f"{command} x:y")
        yield row(name, {"address": "adda"}, "unknown_address", "adda|did you mean ada?", f"{command} adda")
        for value in (*NOBODYS_NAMES, "agent:nobody-here", "channel:folder:none", "group:none"):
            yield row(name, {"address": value}, "unknown_address", value)
        none = "channel:folder:none"
        yield row(name, {"address": none}, "unknown_address", none, f"{command} {none}")
        for value in ("user:boss", "boss"):  # they have boxes
            yield row(name, {"address": value}, "not_found", f"no lane|{value}", f"{command} {value}")


def _binds() -> Iterator[Row]:
    name, right = "agent.bind", RIGHT["agent.bind"]
    command = "agent bind --adapter-type folder"
    for value in ("spar", "", "gone", "agent:gone", "user:spare", NUL):
        yield row(name, {**right, "name": value}, "unknown_agent", shown(value))
    words = f"{command} --name spar --path %unbound"
    yield row(name, {**right, "name": "spar"}, "unknown_agent", "spar |spare?", words)
    for value in ("", "Folder", "pigeon", NUL, "foldr", LONG):
        yield row(name, {**right, "adapter_type": value}, "unknown_adapter", "the adapters are: folder")
    words = "agent bind --name spare --adapter-type foldr --path %unbound"
    yield row(name, {**right, "adapter_type": "foldr"}, "unknown_adapter", "foldr|folder?", words)
    taken = "%namesake"
    yield row(
        name,
        {**FOLDER, "settings": {"path": taken}},
        "binding_taken",
        "folder:box|unbind",
        f"{command} --name spare --path {taken}",
    )
    for path, says in (
        ("relative", "absolute"),
        ("~/x", "absolute"),
        ("", "absolute"),
        ("%home", "the hiboss home"),
        ("%database", "the hiboss home"),
        ("%around", "the hiboss home"),
        ("/", "the hiboss home"),
        ("%blank", "cannot be an address"),
        ("%colon", "cannot be an address"),
        ("%file", "cannot be used"),
        ("%below-a-file", "cannot be used"),
        ("/proc/nothing-here", "cannot be used"),
        ("/tmp/" + NUL, ""),
        ("/tmp/" + ENDLESS, ""),
        ("/a" * 50_000, ""),
    ):
        yield row(name, {**FOLDER, "settings": {"path": path}}, "invalid_params", says)
    for settings, says in (
        ({"path": 5}, "--path"),
        ({"path": ["%unbound"]}, "--path"),
        ({"pth": "%unbound"}, "--pth is not an option of folder|--path"),
        ({"path": "%unbound", "token": "x"}, "--token is not an option of folder"),
    ):
        yield row(name, {**FOLDER, "settings": settings}, "invalid_params", says)
    words = f"{command} --name spare --path %unbound"
    yield row(name, {**right, "connect": False}, "invalid_params", "--no-check", f"{words} --no-check")
    yield row(name, {**right, "groups": "never"}, "invalid_params", "groups|mentioned")
    yield from _bots()
    words = "agent bind spare --adapter-type scripted --path %refusing"
    refused = {"name": "spare", "adapter_type": "scripted", "settings": {"path": "%refusing"}}
    yield row(name, refused, "account_refused", "scripted|401 Unauthorized", words)
    yield row(name, FOLDER, "invalid_params", "--path", f"{command} --name spare")
    yield row(
        name,
        {**FOLDER, "settings": {"path": "%file"}},
        "invalid_params",
        "%file",
        f"{command} --name spare --path %file",
    )


def _bots() -> Iterator[Row]:
    """Of Telegram, by a token that cannot be one: it is not said again, and nobody is asked."""
    name, bot = "agent.bind", {"name": "spare", "adapter_type": "telegram"}
    command = "agent bind --name spare --adapter-type telegram"
    yield row(name, bot, "invalid_params", "--adapter-token", command)
    for token in ("", "7", "7:", ":secret-part", "7 secret-part", "@nexbot", LONG):
        for connect in (True, False):
            given = {**bot, "settings": {"adapter_token": token}, "connect": connect}
            yield row(name, given, "invalid_params", "--adapter-token|123456:ABC")
    words = f"{command} --adapter-token @%file"
    wrong = {**bot, "settings": {"adapter_token": "x"}}
    yield row(name, wrong, "invalid_params", "--adapter-token|123456:ABC", words)
    for value in (7, NUL, ["7:x"]):
        yield row(name, {**bot, "settings": {"adapter_token": value}}, "invalid_params", "--adapter-token")


def _unbinds() -> Iterator[Row]:
    name, right = "agent.unbind", RIGHT["agent.unbind"]
    command = "agent unbind --adapter-type folder"
    for value in ("spar", "", "gone", NUL):
        yield row(name, {**right, "name": value}, "unknown_agent", shown(value))
    yield row(name, {**right, "name": "spar"}, "unknown_agent", "spare?", f"{command} --name spar")
    for value in ("", "pigeon", "foldr", NUL, LONG):
        yield row(name, {**right, "adapter_type": value}, "unknown_adapter", "the adapters are: folder")
    words = "agent unbind --name ada --adapter-type foldr"
    yield row(name, {**right, "adapter_type": "foldr"}, "unknown_adapter", "foldr|folder?", words)
    yield row(name, FOLDER, "unknown_binding", "folder|agent bindings", f"{command} --name spare")
    for value in ("", "none", "box", NUL):  # `box` is nex's
        yield row(name, {**FOLDER, "account": value}, "unknown_binding", "folder:|agent bindings")
    several = {"name": "nex", "adapter_type": "folder"}
    yield row(name, several, "invalid_params", "--account|box|more", f"{command} --name nex")

"""Runs the server alone: `python -m hiboss.testing.bot_api --port 8081 --bot-token T --bot-username nexbot`.

It writes one line with its address when it is ready, and stops at Ctrl-C or SIGTERM. There is one person,
Ada, who has started the bot. Other processes act as people through its control door:

    curl -s localhost:8081/control/says -d '{"text": "hello"}'

Or with this program, as a client of the server at HIBOSS_TELEGRAM_BASE_URL; it prints the answer:

    python -m hiboss.testing.bot_api says '{"text": "hello"}'
    python -m hiboss.testing.bot_api messages

The verbs: hiboss/testing/bot_api/control_door.py.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import urllib.request

from .control_door import open_control_door
from .server import BotApi

DEFAULT_TOKEN = "123456:test-token"  # opens nothing but a server for tests


def main() -> None:
    given = _arguments()
    if given.verb is not None:
        sys.exit(_act(given.verb, given.body))
    api = BotApi(given.api_version, port=given.port, limits=given.limits)
    open_control_door(api)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with api:
        bot = api.add_bot(
            given.bot_username, given.bot_token, privacy=not given.no_privacy, topics=given.topics
        )
        api.add_person(given.person, username=given.person.lower()).starts(bot)
        sys.stdout.write(f"Bot API {given.api_version} at {api.url} for @{bot.username}\n")
        sys.stdout.flush()
        stopped.wait()


def _act(verb: str, body: str) -> int:
    """Let somebody do something on a server that runs already; return the exit status."""
    url = f"{os.environ.get('HIBOSS_TELEGRAM_BASE_URL', '')}/control/{verb}"
    try:
        with urllib.request.urlopen(url, data=body.encode(), timeout=60) as answer:
            sys.stdout.write(f"{answer.read().decode()}\n")
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {verb}: {error}\n")
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hiboss.testing.bot_api", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", nargs="?", help="act on a server that runs already, instead of running one")
    parser.add_argument("body", nargs="?", default="{}", help="what the verb needs, as JSON")
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--bot-token",
        default=os.environ.get("BOT_API_TOKEN", DEFAULT_TOKEN),
        help=f"the token of the bot; also from BOT_API_TOKEN (default: {DEFAULT_TOKEN})",
    )
    parser.add_argument("--bot-username", default="nexbot", help="the name of the bot")
    parser.add_argument("--person", default="Ada", help="the first name of the person")
    parser.add_argument("--api-version", default="10.3", help="the version of the Bot API")
    parser.add_argument("--no-privacy", action="store_true", help="the bot sees everything in groups")
    parser.add_argument("--topics", action="store_true", help="the bot has topics in private chats")
    parser.add_argument("--limits", action="store_true", help="refuse what is sent too fast")
    return parser.parse_args()


if __name__ == "__main__":
    main()

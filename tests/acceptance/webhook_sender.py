"""A daemon in a process of its own that takes requests to a webhook from its standard input, one on each line.

    python -m tests.acceptance.webhook_sender HOME NAME SECRET

It prints the answer to each when it has it, so that a test can kill it in between.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import closing

from hiboss.core import clock
from hiboss.core.errors import HibossError
from hiboss.core.paths import Home
from hiboss.core.settings import Configuration
from hiboss.core.webhook_signatures import key_of, signed
from hiboss.daemon.lifecycle import Daemon


async def serve(home: Home, name: str, key: bytes) -> None:
    daemon = Daemon(home, Configuration(home.config, os.environ))
    await daemon.build()
    try:
        await daemon.begin()
        for line in sys.stdin:
            delivery, text = json.loads(line)
            body = text.encode()
            headers = signed(key, delivery, clock.now() // 1000, body)
            try:
                answer: object = await daemon.dispatcher.receive_webhook(name, headers, body)
            except HibossError as error:
                answer = error.code
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
        while _waiting(home):
            await asyncio.sleep(0.01)
    finally:
        await daemon.close()


def _waiting(home: Home) -> int:
    """Return how many requests are not digested yet."""
    with closing(sqlite3.connect(home.database)) as database:
        query = "SELECT count(*) FROM platform_update WHERE outcome IS NULL"
        return int(database.execute(query).fetchone()[0])


if __name__ == "__main__":
    asyncio.run(serve(Home(sys.argv[1]), sys.argv[2], key_of(sys.argv[3]) or b""))

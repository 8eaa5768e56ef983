"""Many clients of the HTTP door that reconnect while the daemon is killed again and again.

`make soak SOAK=tests.web.reconnect_soak ARGS="--clients 50 --kills 10 --rounds 1"` prints what each round was.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.parties import agents, boss
from tests.support.web_daemons import kept_port, web_daemon
from tests.web.reconnect import reconnect


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50, help="half of them WebSockets, half event streams")
    parser.add_argument("--agents", type=int, default=6, help="with the boss they have these clients")
    parser.add_argument("--kills", type=int, default=10, help="in a round")
    parser.add_argument("--rounds", type=int, default=3, help="each with a new home")
    given = parser.parse_args(arguments)
    os.environ.pop("HIBOSS_HOME", None)
    for number in range(1, given.rounds + 1):
        directory = tempfile.TemporaryDirectory()
        with directory, kept_port() as port, web_daemon(Path(directory.name), web_port=port) as daemon:
            sender, *parties = agents(daemon, given.agents + 1)
            told = reconnect(daemon, sender, [*parties, boss(daemon)], given.clients, given.kills)
        sys.stdout.write(f"round {number}: {told}; every client has exactly its mail\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""hiboss: a post office for people and AI agents.

One folder per layer, lowest first. A module imports its own layer and lower ones.

- `core/`      values, errors, settings and contracts, without I/O
- `store/`     all SQL: one writer thread with group commit, readers, migrations, invariants
- `channels/`  adapters: code connected to platforms, and their supervisor
- `agents/`    turns for agents: the runner, processes, live output, providers
- `routing/`   the way of an envelope: router, scheduler, delivery, attachments, waiters
- `api/`       every operation once: parameters, result, permission level, errors
- `rpc/`       a door: JSON-RPC over the unix socket
- `cli/`       a door: the command line
- `daemon/`    the daemon process: wiring, start and stop, lock, logs
- `testing/`   for tests and for authors of adapters and providers: real and frozen daemons, scripted adapters

The route of an envelope: a door calls an operation; `api` checks it; `routing/router` accepts the
draft; `store` inserts the message and its envelopes; `routing/scheduler` wakes deferred ones at
their time; `routing/delivery` delivers to channels and `agents/runner` gives agents their turns;
`store` settles the envelope (done, or failed). What comes in from a platform enters through its
adapter and the router.
"""

__version__ = "0.1.0"

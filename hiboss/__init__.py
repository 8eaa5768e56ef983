"""hiboss: a post office for people and AI agents.

The map, in the order an envelope travels:

- words (no I/O): `errors`, `clock`, `ids`, `address`, `envelope`, `config`, `paths`, `crashpoint`
- the route: `api` checks, `router` accepts, `store` inserts and settles
- the doors: `rpc` (unix socket), `cli`
- the assembly: `daemon` (order of life), `lock`, `logs`, `testing`
"""

__version__ = "0.1.0"

"""hiboss: a post office for people and AI agents.

The map, in the order an envelope travels:

- words (no I/O): `errors` (on `fault`), `wording`, `clock`, `cron`, `ids`, `address`, `envelope`,
  `events`, `contract` (adapters and providers), `config`, `paths`, `render`, `forgery`, `crashpoint`
- the route: `api` checks, `router` accepts, `store` inserts and settles, `scheduler` wakes,
  `delivery` delivers by `adapters`, `runner` gives agents their turns; beside it `shape` (an
  envelope at every API), `media`, `waiting`, `presence`, `patience`, `modules`
- the doors: `rpc` (unix socket), `cli`
- the assembly: `daemon` (order of life), `works` (who wakes whom), `lock`, `logs`; for tests
  `testing`, `frozen`, `scripted`
"""

__version__ = "0.1.0"

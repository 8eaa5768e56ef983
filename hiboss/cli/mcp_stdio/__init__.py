"""`hiboss mcp`: carries MCP between a client on standard input and output and the MCP worker of the daemon.

- `program`: the command itself, without Typer
- `speaker`: who speaks, by which token
- `worker_link`: the connection to the worker
- `pump`: carries lines in both directions, and connects again when the worker is gone
- `reconnect_timing`: when it tries to connect, and when it gives up
- `mcp_session`: what must be told to the next worker, and what nobody will answer any more
- `line_splitter`: whole lines from parts
"""

"""The MCP door: a worker process that speaks the Model Context Protocol, in both of its eras (docs/mcp.md).

It is the only process that imports the official `mcp` package, which takes a second and 60 MB. The daemon
starts it for the first client. It holds no state that matters: every call goes to the daemon, with the
token of the client.

- `__main__`: the life of the worker
- `daemon_connection`: calls of the daemon, and facts that it tells
- `caller`: who a client is
- `tools`, `tool`, `chat_tools`, `mail_tools`, `asking`: the tools, each a call of an operation
- `resources`, `inbox_page`: what can be read
- `watching`, `subscriptions`: who is told when something is new
- `server`, `answers`: the handlers of the SDK; `tasks`: an ask as a task
- `stdio_clients`, `http_clients`: the two sockets on which clients come
"""

"""The unix socket door: JSON-RPC 2.0, one request or batch per line.

`codec` is the wire format without any I/O, `server` the daemon's end, `client` the CLI's.
"""

"""The unix socket door: JSON-RPC 2.0, one request or batch per line.

`codec` is the wire format without any I/O, `connection` one client's connection, `server` the listener.
"""

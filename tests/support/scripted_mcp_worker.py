"""A worker in the place of `python -m hiboss.mcp`, without the SDK: `python scripted_mcp_worker.py WORD…`.

It keeps to the contract of hiboss/daemon/mcp_process.py, except for what the words say:

- die: it complains and ends before it is ready. deaf: it never becomes ready. stubborn: it ignores SIGTERM and
  the end of its input.
- chatty: it prints much to both outputs, before and after it is ready.

On its sockets it answers each request with its environment, its pid and its open files as JSON. A request for
/idle lets it end as if it had been idle: the sockets first, some moments later the process. /hang hangs up.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import threading
import time


def listen(variable: str) -> socket.socket:
    path = os.environ[variable]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.umask(0o177)
    server.bind(path)
    server.listen(64)
    threading.Thread(target=serve, args=(server,), daemon=True).start()
    return server


def serve(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    with connection:
        asked = connection.recv(65536)
        if b" /idle " in asked:
            end_idle()
            return
        if not asked or b" /hang " in asked:
            return
        told = {"pid": os.getpid(), "environment": dict(os.environ), "cwd": os.getcwd(), "path": sys.path}
        told |= {"files": os.listdir("/proc/self/fd"), "session": os.getsid(0)}
        told |= {"locks": resource.prlimit(0, 10)[0]}
        body = json.dumps(told).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def end_idle() -> None:
    for server in SERVERS:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    time.sleep(0.1)  # so that the daemon is asked for another one meanwhile
    end(0)


def end(status: int) -> None:
    for variable in ("HIBOSS_MCP_SOCKET", "HIBOSS_MCP_HTTP_SOCKET"):
        if os.path.exists(os.environ[variable]):
            os.unlink(os.environ[variable])
    os._exit(status)


if __name__ == "__main__":
    words = sys.argv[1:]
    if "die" in words:
        sys.stderr.write("Traceback: hba_abcdefghijklmnopqrstuvwxyz0123456789 is gone\n")
        end(7)
    if "deaf" in words:
        time.sleep(600)
    if "stubborn" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    SERVERS = [listen("HIBOSS_MCP_SOCKET"), listen("HIBOSS_MCP_HTTP_SOCKET")]
    if "chatty" in words:
        sys.stdout.write("hello\n")
        sys.stderr.write("x" * 200_000 + "\nsecond line\n")
        sys.stderr.flush()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if "chatty" in words:
        sys.stdout.write("y" * 1_000_000)
        sys.stdout.flush()
    sys.stdin.read()
    if "stubborn" in words:
        time.sleep(600)
    end(0)

"""The process at the other end of a unix socket: whose it is, and whether it is still there."""

from __future__ import annotations

import select
import socket
import struct
import sys


def has_gone(peer: socket.socket) -> bool:
    """Tell whether the other end is closed completely, not only for sending."""
    poll = select.poll()
    poll.register(peer.fileno(), select.POLLHUP)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def peer_uid(connection: socket.socket) -> int | None:
    """Return the uid of the process at the other end; None where the platform does not tell."""
    found = _credentials(connection)
    return None if found is None else found[1]


def peer_pid(connection: socket.socket) -> int | None:
    """Return the pid of the process at the other end, as we see it, also from a pid namespace below.

    None where the platform does not tell.
    """
    found = _credentials(connection)
    return None if found is None else found[0]


def _credentials(connection: socket.socket) -> tuple[int, int] | None:
    if sys.platform != "linux":
        return None
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(pid), int(uid)

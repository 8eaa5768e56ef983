"""Errors of conversations and groups: who may do what there. The docstrings are the messages."""

from __future__ import annotations

from .access import NotFound
from .base import HibossError


class UnknownGroup(NotFound):
    """there is no group {name} that you can see; hiboss group list shows your groups, and hiboss group list --open those that you can join"""

    code = "unknown_group"


class Archived(HibossError):
    """{name} is archived and takes no messages; who manages it can open it again: {undo}"""

    code, rpc, http = "archived", -32070, 409


class NotMember(HibossError):
    """{address} is not a member of {name}; {advice}"""

    code, rpc, http = "not_member", -32071, 403


class NotManager(HibossError):
    """only {who} of {name} can {action}, and {caller} is not; hiboss group show {name} shows who is"""

    code, rpc, http = "not_manager", -32072, 403


class OwnerStays(HibossError):
    """{address} owns {name}, and a group keeps its owner: transfer it first, with hiboss group transfer {name} ADDRESS"""

    code, rpc, http = "owner_stays", -32073, 409


class CannotBeMember(HibossError):
    """{address} cannot be {what}: {why}"""

    code, rpc, http = "cannot_be_member", -32074, 409


class GroupClosed(HibossError):
    """{name} is closed: nobody can join it; ask somebody who manages it to add you"""

    code, rpc, http = "group_closed", -32075, 403


class BuiltInGroup(HibossError):
    """{name} is every agent that is registered; nobody creates, changes, joins or leaves it"""

    code, rpc, http = "built_in_group", -32076, 409


class NotTwo(HibossError):
    """a private conversation has exactly two participants, you and one other, and this would have {number}; for more, create a group: hiboss group create NAME --member ADDRESS"""

    code, rpc = "not_two", -32077


class NoGroup(HibossError):
    """{conversation} is no group: its participants are always those of its first message; create a group: hiboss group create NAME --member ADDRESS"""

    code, rpc, http = "no_group", -32078, 409


class EmptyGroup(HibossError):
    """{name} has no members but you, so nothing was sent; hiboss group add adds some"""

    code, rpc, http = "empty_group", -32079, 409

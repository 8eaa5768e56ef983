"""What a caller may not do, what does not exist, and what clashes with something that does."""

from __future__ import annotations

from typing import Any

from .base import EXIT_ARMED, HibossError

# --- who may do what -----------------------------------------------------------------


class NoToken(HibossError):
    """this needs a token: give --as <profile>, --token @file, or HIBOSS_TOKEN (over the socket: params.token, or auth.login once)"""

    code, rpc, http = "no_token", -32001, 401


class BadToken(HibossError):
    """this token is not valid here: mistyped, revoked, or of another hiboss home; hiboss agent token rotate (the boss: hiboss boss token rotate) gives a new one"""

    code, rpc, http = "bad_token", -32002, 401


class Forbidden(HibossError):
    """{operation} needs the level {needed}, and {caller} has {level}; ask the boss"""

    code, rpc, http = "forbidden", -32003, 403


class BossOnly(HibossError):
    """{what} is for the boss alone, and {caller} is not the boss; leave it out, or ask the boss"""

    code, rpc, http = "boss_only", -32003, 403


class FixedLevel(HibossError):
    """{operation} always needs the level {level}; no policy can change that"""

    code, rpc, http = "fixed_level", -32003, 403


class ForeignPeer(HibossError):
    """this socket serves the user with uid {owner} only, and you are uid {uid}"""

    code, rpc, http = "foreign_peer", -32003, 403


# --- what is not there ---------------------------------------------------------------


class NotFound(HibossError):
    """there is no {what} {value} that you can see; {where} shows what there is"""

    code, rpc, http = "not_found", -32004, 404

    def __init__(self, **facts: Any) -> None:
        if type(self) is NotFound:  # the more particular ones say it themselves
            facts.setdefault("where", "hiboss envelope list")
        super().__init__(**facts)


class OtherBox(NotFound):
    """{id} lies with {address}, not with you; to act for them, add --address {address}"""

    code = "other_box"


class UnknownRecipient(NotFound):
    """nobody has the address {address}{hint}; nothing was sent. hiboss agent list shows who is here"""

    code = "unknown_recipient"


class UnknownSender(NotFound):
    """nobody has the address {address}{hint}, so nothing was sent in that name. hiboss agent list shows who is here"""

    code = "unknown_sender"


class UnknownAddress(NotFound):
    """nobody has the address {address}{hint}; hiboss agent list shows who is here"""

    code = "unknown_address"


class UnknownAgent(NotFound):
    """there is no agent {name}{hint}; hiboss agent list shows who is here"""

    code = "unknown_agent"


class UnknownUser(NotFound):
    """there is nobody called {name}{hint} whose box could be changed; hiboss user list shows who has one"""

    code = "unknown_user"


class UnknownProfile(NotFound):
    """there is no profile {name}{hint}; profiles here: {profiles}"""

    code = "unknown_profile"


class UnknownOperation(NotFound):
    """{name} is no operation a policy can name{hint}; hiboss permission policy get lists them"""

    code = "unknown_operation"


class NotBound(HibossError):
    """{sender} cannot post to {address}: no {adapter} account it may use reaches there; bind one with: hiboss agent bind"""

    code, rpc, http = "not_bound", -32005, 403


class UnknownBinding(NotFound):
    """{account} is not bound to that agent; hiboss agent bindings shows what is"""

    code = "unknown_binding"


class UnknownAdapter(NotFound):
    """there is no adapter {name}{hint}; there are: {known}"""

    code = "unknown_adapter"


class NotSetUp(HibossError):
    """this home ({home}) is not set up yet; run: hiboss setup"""

    code, rpc, http = "not_set_up", -32006, 409


# --- clashes -------------------------------------------------------------------------


class NameTaken(HibossError):
    """the name {name} is taken (names are unique whatever the case); choose another, or delete that agent first"""

    code, rpc, http = "name_taken", -32009, 409


class BindingTaken(HibossError):
    """{account} is bound already, with other settings ({binding}); unbind it first, or choose another name"""

    code, rpc, http = "binding_taken", -32009, 409


class ArmedElsewhere(HibossError):
    """somebody already watches for {address}; one watch is enough"""

    code, rpc, http, exit = "armed_elsewhere", -32015, 409, EXIT_ARMED


class NotRunning(HibossError):
    """{id} is {state}; only a run that is under way can be cancelled, paused or resumed. hiboss run list shows them"""

    code, rpc, http = "not_running", -32026, 409


class KeyReused(HibossError):
    """the key {key} was already used for other content (envelope {id}); a key repeats one request and no other: for new content take a new key"""

    code, rpc, http = "key_reused", -32010, 409


class Gap(HibossError):
    """this cursor belongs to another state of the store (it was restored or replaced); start again without a cursor"""

    code, rpc, http = "gap", -32011, 410


class TooLate(HibossError):
    """{id} can no longer be {action}: it is {state}; hiboss envelope get shows how it stands"""

    code, rpc, http = "too_late", -32012, 409

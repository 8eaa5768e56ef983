"""Errors of permission, of things that do not exist, and of conflicts. The docstrings are the messages."""

from __future__ import annotations

from .base import EXIT_WATCHED, HibossError

TYPE_CHECKING = False  # see base.py
if TYPE_CHECKING:
    from typing import Any

# --- permission ----------------------------------------------------------------------


class NoToken(HibossError):
    """this needs a token: give --as <profile>, --token @file, or HIBOSS_TOKEN (over the socket: params.token, or auth.login once; over HTTP: Authorization: Bearer)"""

    code, rpc, http = "no_token", -32001, 401


class AgentNotNamed(HibossError):
    """{sign}, so an agent seems to run this command, but the command does not name it; give --as NAME, --token @FILE or HIBOSS_TOKEN (if you are the boss: --as boss)"""

    # Without a name the command line would speak as the boss. The daemon sees harnesses that a sandbox hides.
    code, rpc, http = "agent_not_named", -32001, 401


class McpSpeakerNotNamed(HibossError):
    """hiboss mcp does not know who speaks, and without a token nobody is let in: give --as NAME (profiles here: {profiles}), --token @FILE or HIBOSS_TOKEN; sessions of Claude Code and Codex that hiboss hooks install attaches need none of them; to speak as the boss, say so: --as-boss"""

    # Only the command line raises this, where other commands would speak as the boss.
    code, rpc, http = "mcp_speaker_not_named", -32001, 401


class McpProfileMissing(HibossError):
    """no token of {name} is stored here, and none is written into the settings of a client; store one with: {command}"""

    # Only the command line raises this.
    code, rpc, http = "mcp_profile_missing", -32004, 404


class CannotAttach(HibossError):
    """this session cannot be attached: {why}"""

    code, rpc, http = "cannot_attach", -32012, 409


class AgentChangesHooks(HibossError):
    """{sign}, so an agent seems to run this command, and an agent cannot change its own hooks; run it in a terminal of your own"""

    # Only the command line raises this.
    code, rpc, http = "agent_changes_hooks", -32003, 403


class AgentChangesMcpServers(HibossError):
    """{sign}, so an agent seems to run this command, and an agent cannot change its own MCP servers; run it in a terminal of your own"""

    # Only the command line raises this.
    code, rpc, http = "agent_changes_mcp_servers", -32003, 403


class NotAttached(HibossError):
    """this session is not attached; it is when its start hook has run: hiboss hooks status"""

    code, rpc, http = "not_attached", -32012, 409


class BadToken(HibossError):
    """this token is not valid here: mistyped, revoked, or from another hiboss home; to get a new one: hiboss agent token rotate (for the boss: hiboss boss token rotate)"""

    code, rpc, http = "bad_token", -32002, 401


class WebhookRefused(HibossError):
    """this request is refused: there is no such webhook, or the signature is missing, wrong or too old"""

    code, rpc, http = "webhook_refused", -32008, 401


class Forbidden(HibossError):
    """{operation} needs the level {needed}, but {caller} has {level}; ask the boss"""

    code, rpc, http = "forbidden", -32003, 403


class BossOnly(HibossError):
    """{what} is for the boss only, and {caller} is not the boss; leave it out, or ask the boss"""

    code, rpc, http = "boss_only", -32003, 403


class NotAPerson(HibossError):
    """{what} is for people, and {caller} is none"""

    code, rpc, http = "not_a_person", -32003, 403


class NotAuthor(HibossError):
    """{id} was written by {author}; {who} can {action} it"""

    code, rpc, http = "not_author", -32003, 403


class FixedLevel(HibossError):
    """{operation} always needs the level {level}; no policy can change that"""

    code, rpc, http = "fixed_level", -32003, 403


class ForeignPeer(HibossError):
    """this socket serves only the user with uid {owner}, and you have uid {uid}"""

    code, rpc, http = "foreign_peer", -32003, 403


class DoorRefused(HibossError):
    """{what} is only possible over the unix socket of the machine where the daemon runs, not through {door}; use the hiboss command there"""

    code, rpc, http = "door_refused", -32007, 403


# --- things that do not exist --------------------------------------------------------


class NotFound(HibossError):
    """there is no {what} {value} that you can see; {where} shows what there is"""

    code, rpc, http = "not_found", -32004, 404

    def __init__(self, **facts: Any) -> None:
        if type(self) is NotFound:  # the subclasses name their own command
            facts.setdefault("where", "hiboss envelope list")
        super().__init__(**facts)


class OtherBox(NotFound):
    """{id} is in the box of {address}, not in yours; to act for {address}, add --address {address}"""

    code = "other_box"


class UnknownRecipient(NotFound):
    """there is no agent, person or group {address}{hint}; nothing was sent. hiboss agent list and hiboss user list show who is here"""

    code = "unknown_recipient"


class UnknownSender(NotFound):
    """there is no agent or person {address}{hint} that could send this; nothing was sent. hiboss agent list and hiboss user list show who is here"""

    code = "unknown_sender"


class UnknownAddress(NotFound):
    """there is no agent, person or group {address}{hint}; hiboss agent list and hiboss user list show who is here"""

    code = "unknown_address"


class UnknownAgent(NotFound):
    """there is no agent {name}{hint}; hiboss agent list shows all agents"""

    code = "unknown_agent"


class UnknownTool(NotFound):
    """there is no tool {name}{hint}; tools/list of the MCP server shows all tools"""

    code = "unknown_tool"


class UnknownUser(NotFound):
    """there is no user {name}{hint} that can be changed; hiboss user list shows all users"""

    code = "unknown_user"


class UnknownProfile(NotFound):
    """there is no profile {name}{hint}; the profiles are: {profiles}"""

    code = "unknown_profile"


class UnknownOperation(NotFound):
    """{name} is not an operation of the policy{hint}; hiboss permission policy get lists them all"""

    code = "unknown_operation"


class NotBound(HibossError):
    """{sender} cannot post to {address}: no {adapter} binding that it may use posts there; hiboss agent bindings shows them all, and hiboss agent bind NAME adds one"""

    code, rpc, http = "not_bound", -32005, 403


class UnknownBinding(NotFound):
    """{account} is not bound to that agent; hiboss agent bindings shows its accounts"""

    code = "unknown_binding"


class UnknownAdapter(NotFound):
    """there is no adapter {name}{hint}; the adapters are: {known}"""

    code = "unknown_adapter"


class UnknownWebhook(NotFound):
    """there is no webhook {name}{hint}; hiboss webhook list shows all webhooks"""

    code = "unknown_webhook"


class NotSetUp(HibossError):
    """this home ({home}) is not set up yet; run: hiboss up"""

    code, rpc, http = "not_set_up", -32006, 409


# --- conflicts -----------------------------------------------------------------------


class NameTaken(HibossError):
    """the name {name} is taken (upper and lower case are the same name); choose another, or delete the one that has it; hiboss agent set {name} … changes an agent"""

    code, rpc, http = "name_taken", -32009, 409


class BindingTaken(HibossError):
    """{account} is already bound with other settings ({binding}); unbind it first, or choose another name"""

    code, rpc, http = "binding_taken", -32009, 409


class WebhookTaken(HibossError):
    """there is a webhook {name} already; choose another name, or change it: hiboss webhook set {name} …"""

    code, rpc, http = "webhook_taken", -32009, 409


class AccountRefused(HibossError):
    """the account could not be checked with its platform ({adapter}): {why}"""

    code, rpc, http = "account_refused", -32033, 502


class AlreadyWatched(HibossError):
    """somebody already watches the mail of {address}; only one watch at a time is allowed"""

    code, rpc, http, exit = "already_watched", -32015, 409, EXIT_WATCHED


class NotRunning(HibossError):
    """{id} is {state}; only a run that has not ended can be {what}. hiboss run list shows the runs"""

    code, rpc, http = "not_running", -32026, 409


class CannotSteer(HibossError):
    """{id} cannot be steered: its provider {provider}, as it is set, takes no words during a turn; send a message for the next turn, or cancel the run. hiboss agent providers shows what each can do"""

    code, rpc, http = "cannot_steer", -32027, 409


class NothingRunning(HibossError):
    """no run is active now; hiboss run list shows the runs that have ended"""

    code, rpc, http = "nothing_running", -32026, 409


class KeyReused(HibossError):
    """the key {key} was already used for other content (envelope {id}); a key stands for one request: use a new key for new content"""

    code, rpc, http = "key_reused", -32010, 409


class Gap(HibossError):
    """this cursor is from an earlier store, which was restored or replaced since; start again without a cursor"""

    code, rpc, http = "gap", -32011, 410


class TooLate(HibossError):
    """{id} can no longer be {action}: it is {state}; hiboss envelope get {id} shows its state"""

    code, rpc, http = "too_late", -32012, 409


# --- the breaker ---------------------------------------------------------------------


class PulledAgain(HibossError):
    """the breaker was pulled again after you looked, so it stays pulled; look why (hiboss daemon status), then: hiboss go"""

    code, rpc, http = "pulled_again", -32065, 409


# --- asks ----------------------------------------------------------------------------


class AskSettled(HibossError):
    """{id} was settled before: {first} ({at}); hiboss ask get {id} shows it"""

    code, rpc, http = "ask_settled", -32060, 409


class OwnAsk(HibossError):
    """{asker} asked {id}, and who asks never answers itself; hiboss ask cancel {id} takes the question back"""

    code, rpc, http = "own_ask", -32061, 403


class NotAsker(HibossError):
    """{id} was asked by {asker}; only {asker} and the boss can cancel it"""

    code, rpc, http = "not_asker", -32062, 403


class CannotRemember(HibossError):
    """the answer to {id} cannot be remembered (scope {scope}): {why}; answer it with the scope once"""

    code, rpc, http = "cannot_remember", -32063, 409


class AskFixed(HibossError):
    """{what} cannot be {action}: {why}"""

    code, rpc, http = "ask_fixed", -32064, 409

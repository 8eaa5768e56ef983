"""`hiboss team`"""

from __future__ import annotations

from ..call import call
from ..plain_commands import PlainCommands
from ..views import agents as views

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from ..options import As, Json, Token

app = PlainCommands()


@app.command()
def team(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the state of every agent.

    Also the mail that is due, the oldest unanswered message, and the last run.
    """
    views.team(call("agent.team", {}, token=token, profile=as_))

"""`hiboss team`"""

from __future__ import annotations

from ..call import call
from ..options import As, Json, Token, single_command
from ..views import agents as views

app = single_command()


@app.command()
def team(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the state of every agent.

    Also the mail that is due, the oldest unanswered message, and the last run.
    """
    views.team(call("agent.team", {}, token=token, profile=as_))

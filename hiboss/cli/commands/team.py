"""`hiboss team`"""

from __future__ import annotations

import typer

from .. import views
from ..session import As, Json, Token, call_in_person

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def team(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show how all agents stand: state, mail that is due, the oldest unanswered, the last run."""
    views.team(call_in_person("agent.team", {}, token=token, profile=as_))

"""`hiboss webhook …`"""

from __future__ import annotations

from typing import Annotated

from ...core.paths import Home
from .. import output
from ..call import call, call_as
from ..credentials import find_token
from ..options import As, Json, Text, Texts, Token, Yes, argument, flag, noun
from ..text_input import confirm, unrepeated
from ..views import webhooks as views

app = noun("Let programs post to agents, and post facts to web servers.")

NewName = Annotated[str, argument("NAME", "Small letters, digits and single dashes, like ci.")]
Name = Annotated[str, argument("NAME", "The webhook's name; hiboss webhook list shows them.")]
TEMPLATE = "The text of a message, with fields of the JSON: '{repository.name} was pushed'."
SUBJECT = "The subject of a message, with fields too."
Topics = Annotated[Texts, flag("--topic", "TOPIC", "Only these facts, like run.ended. May be repeated.")]
Addresses = Annotated[
    Texts, flag("--address", "ADDRESS", "Only facts of which it is a party: kai, user:ann. May be repeated.")
]


@app.command()
def create(
    name: NewName,
    to: Annotated[str, flag("--to", "AGENT", "The agent that gets what comes in.")],
    template: Annotated[Text, flag("--template", "TEXT", TEMPLATE)] = None,
    subject: Annotated[Text, flag("--subject", "TEXT", SUBJECT)] = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Let a program post to an agent.

    It needs the path and the secret. The secret is shown only now.

    Example: hiboss webhook create ci --to nex --template "{repository.name}: {action}"
    """
    params = {"name": name, "to": to, "template": template, "subject": subject}
    views.webhook(call("webhook.create", params, token=token, profile=as_))


@app.command("list")
def list_(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """List the webhooks of both directions: in and out."""
    views.webhooks(call("webhook.list", {}, token=token, profile=as_))


@app.command()
def show(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show one webhook, and whether it works."""
    views.webhook(call("webhook.get", {"name": name}, token=token, profile=as_))


@app.command("set")
def set_(
    name: Name,
    to: Annotated[Text, flag("--to", "AGENT", "In: the agent that gets what comes in.")] = None,
    template: Annotated[Text, flag("--template", "TEXT", f"In: {TEMPLATE} '' for the body itself.")] = None,
    subject: Annotated[Text, flag("--subject", "TEXT", f"In: {SUBJECT} '' for none.")] = None,
    url: Annotated[Text, flag("--url", "URL", "Out: where to post to.")] = None,
    topic: Topics = None,
    address: Addresses = None,
    all_: Annotated[bool, flag("--all", None, "Out: all facts of everybody again.")] = False,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Change a webhook. What is not given stays as it is, also the secret.

    Example: hiboss webhook set ci --to kai
    """
    params = {
        "name": name,
        "to": to,
        "template": template,
        "subject": subject,
        "url": url,
        "topics": [] if all_ else topic and unrepeated(topic),
        "addresses": [] if all_ else address and unrepeated(address),
    }
    views.webhook(call("webhook.set", params, token=token, profile=as_))


@app.command()
def rotate(name: Name, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Give a webhook a new secret, shown only now. The old one ends at once."""
    views.webhook(call("webhook.rotate", {"name": name}, token=token, profile=as_))


@app.command()
def delete(name: Name, yes: Yes = False, token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Delete a webhook that receives. What came in by it is kept."""
    _end("delete", name, yes, token, as_)


@app.command()
def subscribe(
    name: NewName,
    url: Annotated[str, flag("--url", "URL", "Where to post to: https, or http on this machine.")],
    topic: Topics = None,
    address: Addresses = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Post facts to a web server, signed.

    The secret of the signatures is shown only now.

    Example: hiboss webhook subscribe audit --url https://example.org/hiboss --topic run.ended
    """
    params = {
        "name": name,
        "url": url,
        "topics": unrepeated(topic or []),
        "addresses": unrepeated(address or []),
    }
    views.webhook(call("webhook.subscribe", params, token=token, profile=as_))


@app.command()
def unsubscribe(
    name: Name, yes: Yes = False, token: Token = None, as_: As = None, json_: Json = False
) -> None:
    """Delete a webhook that posts facts. What still waits to be posted fails."""
    _end("unsubscribe", name, yes, token, as_)


def _end(verb: str, name: str, yes: bool, token: str | None, profile: str | None) -> None:
    home = Home()
    found = find_token(home, token, profile)  # once: it may be read from standard input
    if not yes:  # first: nobody is asked about a webhook that is not there
        call_as(home, "webhook.get", {"name": name}, found)
    question = f"Delete the webhook {name}? Its secret ends"
    confirm(yes, f"delete the webhook {name}", question, f"hiboss webhook {verb} --help")
    output.answer(call_as(home, f"webhook.{verb}", {"name": name}, found))

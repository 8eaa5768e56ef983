"""`hiboss permission …`"""

from __future__ import annotations

import json
from typing import Annotated, Any

from ...core.errors import InvalidParams
from .. import output
from ..call import call
from ..options import As, Json, Token, flag, noun
from ..text_input import read_file

app = noun("Show or change the level that each operation needs.")
policy_app = noun("Show or change the level that each operation needs.")
app.add_typer(policy_app, name="policy")


@policy_app.command("get")
def get(token: Token = None, as_: As = None, json_: Json = False) -> None:
    """Show the level that each operation needs.

    The levels are restricted, standard, privileged and boss. You can edit the output and give it to: hiboss permission policy set --file FILE
    """
    _show(call("permission.policy.get", {}, token=token, profile=as_))


@policy_app.command("set")
def set_(
    file: Annotated[
        str, flag("--file", "FILE", "Lines `operation: level`, or JSON; - reads standard input.")
    ],
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> None:
    """Set the level that each operation needs. What the file does not name gets its default."""
    policy = _parse(read_file(file).removeprefix("\ufeff"))
    _show(call("permission.policy.set", {"policy": policy}, token=token, profile=as_))


def _show(result: dict[str, Any]) -> None:
    output.answer(result, result["policy"])


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidParams(detail=f"the policy names {name} twice")
    return dict(pairs)


def _parse(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text, object_pairs_hook=_without_repeats)
        except ValueError as error:
            raise InvalidParams(detail=f"the policy is no JSON: {error}") from None
        except RecursionError:
            raise InvalidParams(detail="the policy is no JSON: it is nested too deep") from None
        inner = document.get("policy")
        return inner if isinstance(inner, dict) else document
    policy: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        name, colon, level = words.partition(":")
        if words and not (colon and name.strip() and level.strip()):
            raise InvalidParams(
                detail=f"line {number} of the policy is no `operation: level`, like envelope.send: standard"
            )
        if words and policy.setdefault(name.strip(), level.strip()) != level.strip():
            raise InvalidParams(detail=f"line {number} of the policy names {name.strip()} again")
    if not policy:  # more likely a mistake than a decision
        raise InvalidParams(detail="the policy is empty; {} would give every operation its default")
    return policy

"""`hiboss watch`"""

from __future__ import annotations

from ...core.errors import EXIT_STOPPED, EXIT_TIMEOUT, HungUp
from .. import output
from ..call import call, timeout_for
from ..plain_commands import PlainCommands

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from ..options import Address, As, CameAfter, Json, Timeout, Token

app = PlainCommands()


@app.command()
def watch(
    timeout: Timeout = "55s",
    after: CameAfter = None,
    address: Address = None,
    token: Token = None,
    as_: As = None,
    json_: Json = False,
) -> int | None:
    """Wait for mail, print it, and end.

    It prints unread mail as a short digest, and only one watch for a box can run: made to wake an
    idle agent. hiboss envelope wait shows mail in full; hiboss poll shows each envelope once.

    Exit status: 0 mail came, 4 no mail in time, 5 another watch runs already, 6 the daemon stopped.
    """
    params = {"timeout": timeout, "after": after, "address": address}
    try:
        result = call("envelope.watch", params, token=token, profile=as_, timeout=timeout_for(timeout))
    except HungUp as error:  # the daemon was killed: the same as if it had said that it stops
        output.fail(error)
        return EXIT_STOPPED
    if result["timed_out"]:
        output.answer(result, {"timed-out": True, "next-cursor": result["next"]})
        return EXIT_TIMEOUT
    if output.Mode.json:
        output.document(result)
        return None
    output.rendered(result["digest"])
    output.line()
    output.record({"next-cursor": result["next"]})
    return None

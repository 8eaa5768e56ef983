"""A model server for tests: the Messages API and the Responses API on loopback, which follow a script.

The real programs (Claude Code, Codex, ACP agents) think with it instead of a model, offline:

with ModelServer() as server:
    server.script(UseTool("Bash", {"command": "ls"}), Say("two files"))
    ... run `claude -p` with ANTHROPIC_BASE_URL=server.anthropic_url and ANTHROPIC_API_KEY=anything
    assert server.requests[-1].tool_results == ["a\\nb"]

It refuses what the real APIs refuse: no credentials, a malformed request, an unknown path.
"""

from .request import Request
from .script import Cut, Fail, Hold, Say, StreamFail, UseTool
from .server import ModelServer

__all__ = ["Cut", "Fail", "Hold", "ModelServer", "Request", "Say", "StreamFail", "UseTool"]

"""The provider `claude` with the real Claude Code, against the scripted model server."""

from __future__ import annotations

from hiboss.testing.model_server import Say
from tests.real.claude_rig import ClaudeRig
from tests.real.harness_contract import HarnessContract
from tests.real.harness_rig import HarnessRig, Turn


class TestClaude(HarnessContract):
    rig_class = ClaudeRig

    async def test_an_empty_answer_is_no_failure(self, rig: HarnessRig) -> None:
        """Claude Code asks the model once more for something to show."""
        rig.server.script(rig.shell("echo done > done.txt"), Say(""), Say(""))
        assert (await Turn(rig, "do it quietly", autonomy="high").answer()).text == ""
        assert (rig.workspace / "done.txt").exists()

"""The provider `acp` with real agents, against the scripted model server."""

from __future__ import annotations

from tests.real.acp_rigs import ClaudeAcpRig, CodexAcpRig
from tests.real.harness_contract import HarnessContract


class TestClaudeAgentAcp(HarnessContract):
    rig_class = ClaudeAcpRig


class TestCodexAcp(HarnessContract):
    rig_class = CodexAcpRig

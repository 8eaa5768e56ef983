"""Every cell of the contract, with the real Codex."""

from __future__ import annotations

from tests.real.codex_rig import CodexRig
from tests.real.harness_contract import HarnessContract


class TestCodex(HarnessContract):
    rig_class = CodexRig

"""Tests with the real programs (Claude Code, Codex, ACP agents) and the model server of hiboss.testing.

`make real` installs the programs and runs these. `make test` skips them, and says so.
"""

import pytest

pytest.register_assert_rewrite(
    "tests.real.harness_contract",
    "tests.real.harness_control",
    "tests.real.harness_faults",
    "tests.real.mcp_contract",
)

"""Tests with the real programs (Claude Code, Codex, ACP agents) and the model server of hiboss.testing.

`make real` installs the programs and runs these. `make test` does not collect them.
"""

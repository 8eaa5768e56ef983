"""Attached sessions: mail for the Claude Code or Codex that is open in somebody's terminal.

- `sessions`: all open sessions, what their hooks report, and which of them takes an agent's next turn
- `open_session`: one of them: what it does now, and the turn that it has
- `provider`: in the place of a provider, gives a turn to an open session
- `wording`: what sessions are told
- `late_reports`: what hooks reported while no daemon ran
- `claude_doors`, `codex_doors`: how an idle session of each harness is woken, and what it says of itself
"""

"""How agents think: one file per provider.

- `command`: a program of yours, started for each turn
- `webhook`: a server of yours, which gets each turn as one signed POST
- `acp`: any agent that speaks the Agent Client Protocol
- `demo`: built in, without network and model, to try hiboss out
- `claude`: Claude Code, one process for each turn
- `programs`: where programs of others are, and their versions
- `codex`: Codex, of OpenAI
- `registry`: finds a provider by its name

What a provider must do is in hiboss/core/contracts/provider.py.
"""

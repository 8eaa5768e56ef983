"""How agents think: one file per provider.

- `command`: a program of yours, started for each turn
- `webhook`: a server of yours, which gets each turn as one signed POST
- `demo`: built in, without network and model, to try hiboss out
- `registry`: finds a provider by its name

What a provider must do is in hiboss/core/contracts/provider.py.
"""

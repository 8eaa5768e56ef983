"""The runner: agents of mode `run` get their turns here.

`runner` (who is next, and what came of it), `work` (one run, from its process to its outcome),
`task` (what a turn contains), `process` (one program in hand), `providers` (how agents think).
"""

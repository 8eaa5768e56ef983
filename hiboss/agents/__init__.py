"""How agents of mode `run` get their turns.

- `runner`: which agent is next, and what is written when a run ends
- `run_execution`: one run, from the call of its provider to its outcome, with its time limits
- `turn_input`: what a run is given: the text of the turn, the environment, the workspace
- `instructions`: what an agent is told about itself; `memory_files`: what it keeps between sessions
- `session_notes`: what a turn says of a new session
- `provider_finding`: a provider as it is set, without a turn: what it can do, and what it finds
- `live_output`: what a run has reported so far, in memory, for those who follow it
- `child_process`: one program: start it, feed it, read it, end it
- `process_control`: find, stop and end all processes of a run
- `survivors`: runs of whose processes some may not have ended, until the boss is told
- `providers/`: how an agent thinks: a program, a webhook, the built-in demo

Not here: the rules of a run in the database (hiboss/store/run_*.py) and the operations `run.*` and
`agent.*` (hiboss/api).
"""

"""The provider `codex`: Codex (`codex app-server`), one process for each turn, lines of JSON both ways.

- `settings`: what `hiboss agent set` takes
- `arguments`: how the program is called
- `program`: where it is, and whether somebody is logged in
- `messages`: requests and their answers on one connection
- `opening`: its first steps: log in, begin or resume a thread
- `conversation`: its turn, until its end
- `turn_events`: what it reports about the turn
- `items`: its items (commands, edits, …) as lines for people
- `usage`: the tokens of the turn
- `failures`: what its errors mean
- `approvals`: its questions to people; `asking`: those that wait now
- `provider`: all of this together
"""

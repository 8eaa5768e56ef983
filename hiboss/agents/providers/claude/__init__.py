"""The provider `claude`: Claude Code (`claude -p`), one process for each turn, lines of JSON both ways.

- `settings`: what `hiboss agent set` takes
- `arguments`: how the program is called
- `program`: where it is, and whether somebody is logged in
- `conversation`: one process: what it is told, and what it asks
- `output`: what it prints
- `usage`: tokens and cost of the turn
- `failures`: what its errors mean
- `permissions`: its questions to people
- `saved_sessions`: its files of sessions, and who has one open
- `provider`: all of this together
"""

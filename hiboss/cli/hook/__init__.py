"""What harnesses call: `hiboss hook claude` for each event, `hiboss watch --hook claude` to wake an idle session.

- `program`: the entry: reads the event, says nothing when something fails
- `events`: what is reported to the daemon for each event, and what the harness is answered
- `harness`: which process and session it is, and whether a person sits there
- `daemon_calls`: calls of the daemon, and reports that it could not take
- `waiter`: waits until an idle session is to be woken

Each tool that an agent uses pays for this, and a waiter lives as long as its session: so it imports neither
Typer nor anything else that is large, and it never shows an error on the screen of the harness.
"""

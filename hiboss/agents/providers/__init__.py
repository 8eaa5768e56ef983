"""How agents think: `command` (a program), `webhook` (a server of yours), `demo` (built in)."""

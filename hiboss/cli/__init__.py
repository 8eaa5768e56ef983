"""The terminal door: `hiboss noun verb --flag`.

`main` only mounts, `session` finds the token and calls the daemon, `spawn` starts the
daemon as a process, `output` is the one module that prints; then one file per noun.
Every command pays for what is imported here, so nothing heavy is.
"""

"""The terminal door: `hiboss noun verb NAME --flag`.

`main` finds the command, `commands` has one file per noun, `options` and `positional` say how it
is written, `credentials` finds the token, `call` calls the daemon, `daemon_process` starts it,
`views` say what a noun looks like, and `output` is the one module that prints.
Every command pays for what is imported here, so nothing heavy is.
"""

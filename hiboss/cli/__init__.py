"""The terminal door: `hiboss noun verb NAME --flag`.

`entry` is where the program begins. `quick` runs commands that are called often (`plain_commands`), without
Typer; else `main` finds the command. `commands` has one file per noun, `options` and `positional` say how it
is written, `credentials` finds the token, `call` calls the daemon, `daemon_process` starts it,
`views` say what a noun looks like, `output` is the one module that prints, and `ending` makes the exit status.
Every command pays for what is imported here, so nothing heavy is.
"""

"""The daemon process: it puts the parts together and runs them.

- `__main__`: the command `python -m hiboss.daemon`
- `lifecycle`: build, start, serve, reload, stop, in this order
- `wiring`: connects runner, delivery, scheduler and adapters: which part wakes which
- `lock`: one daemon per home
- `logs`: the log file, without secrets
"""

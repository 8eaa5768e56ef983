"""Values, contracts and rules without I/O that every other part uses. Nothing here knows the store or a door.

- `address`, `ids`, `envelope`, `clock`: addresses, ids, messages and times as values
- `schedule_times`: when a schedule is due (cron expressions, intervals, single times)
- `envelope_json`, `shown_envelope`: an envelope as JSON; `rendering`, `escaping`: as text, unforgeable
- `errors/`: every error, with its message and its codes; `quoting`: user input inside messages
- `settings`, `paths`, `plugins`: the settings, the home directory, modules of other authors
- `file_guard`: opens files that come in or go out, and keeps them apart from the home directory
- `contracts/`: what adapters and providers must do
- `events`: facts published inside the daemon
- `backoff`, `work_queue`: delays between retries, and how many lanes or agents work at the same time
- `crashpoint`: points where a test can kill the daemon
"""

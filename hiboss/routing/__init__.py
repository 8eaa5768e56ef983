"""The way of an envelope through the daemon.

- `router`: checks and accepts drafts of doors and messages of adapters
- `attachments`: copies the files of a message into `media/`
- `scheduler`: wakes what is due at a time
- `delivery`: hands envelopes for channels to their adapters
- `waiters`: wakes the calls that wait for mail (envelope.wait, envelope.watch, follow)
- `presence`: when each caller was last seen

Turns of agents are in hiboss/agents, SQL is in hiboss/store.
"""

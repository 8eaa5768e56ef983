"""The way of an envelope through the daemon.

- `router`: checks and accepts drafts of doors, and what comes in
- `intake`: takes updates from adapters, and asks them what these mean
- `attachments`: copies the files of a message into `media/`
- `scheduler`: wakes what is due at a time
- `delivery`: hands envelopes for channels to their adapters; `letters`: the form in which these get them
- `live_posts`: lets an answer grow in its channel (`growing_answer`: what it shows); `live_endings`: makes it
  the answer, or removes it
- `signs`: shows what passes, like typing; `typing_signs`: who types where
- `waiters`: wakes the calls that wait for mail (envelope.wait, envelope.watch, follow)
- `presence`: when each caller was last seen, and which agents are here; `user_presence`: which people are
- `stuck_runs`: runs without a sign of life; `deadlines`: one timer for all that ends by itself

Turns of agents are in hiboss/agents, SQL is in hiboss/store.
"""

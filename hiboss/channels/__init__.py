"""Adapters: the code that connects hiboss to platforms.

- `registry`: finds an adapter class by its type
- `supervisor`: keeps one adapter running for each binding, and restarts it after a crash
- `blocking_calls`: runs file system calls that may hang in a thread of their own
- `folder`: the adapter for a directory (`in/` and `out/`); `folder_directory`, `folder_inbox`: its parts;
  `folder_messages`: the content of its files
- `telegram`, `webhook`: the adapters for Telegram and for webhooks

What an adapter must do is in hiboss/core/contracts/adapter.py. Handing envelopes to adapters is in
hiboss/routing/delivery.py, and what comes in from them in hiboss/routing/intake.py.
"""

"""For tests of hiboss, and of adapters, providers and programs that use it.

- `running_daemon`: a real daemon process in a home of its own
- `frozen_clock`: a daemon inside the test, whose clock the test moves
- `scripted_adapter`: an adapter that follows a script, in place of a platform
"""

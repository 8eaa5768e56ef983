"""For tests of hiboss and of what is built on it: a real daemon, a daemon whose clock the test moves,
and an adapter that follows a script."""

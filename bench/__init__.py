"""How fast hiboss is: `make bench`, or `python -m bench --help`.

What counts are ratios within one run, because machines differ and are noisy: sends
against the same rows written by a plain loop (bare), a large store against a small one,
the CLI against `python -c pass`. Both sides of a ratio are measured in turns, as medians of pairs.
Floors that must hold on a busy machine are about CPU time; aims are what we want next.

Whether a change made something slower is said by `--beside TREE`: every row, in turns with another checkout.

    __main__   the options and the order of the work
    parts      what is measured, one module for each kind of work:
               sends callers rests boxes commands mailboxes deferred delivery waiters followers turns
               claude_turns telegram telegram_out stops breaker web mcp
    rounds     slices of work, each of which waits for its turn
    beside worker verdicts
               `--beside TREE`: a process for each tree, turn by turn; better, equal or worse
    redis_server
               `--beside redis`
    homes mailbox_homes
               homes to measure in, with as many envelopes, or messages of many kinds, as wanted
    load       the load generator, a process of its own
    looks      lists, kept and after a commit, in pings
    programs   whole programs against `python -c pass`
    bare       the same rows written by a plain loop
    stamped    the adapter that says when it was asked to post
    figures    what was measured, the ratios and their floors
    report     the table, the JSON file, the comparison with an earlier one
"""

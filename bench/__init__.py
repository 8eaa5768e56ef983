"""How fast hiboss is: `make bench`, or `python -m bench --help`.

What counts are ratios within one run, because machines differ and are noisy: sends
against the same rows written by a plain loop (bare), a large store against a small one,
the CLI against `python -c pass`. Both sides of a ratio are measured in turns, as medians of pairs.
Floors that must hold on a busy machine are about CPU time; aims are what we want next.

    __main__   the options and the order of the work
    homes mailbox_homes
               homes to measure in, with as many envelopes, or messages of many kinds, as wanted
    load       the load generator, a process of its own
    bare       the same rows written by a plain loop
    programs   whole programs against `python -c pass`
    beside redis_server trees
               `--beside`: sends in turns with redis-server, or with another checkout of hiboss
    journal journal_server journal_spike spike_process spike_kills
               a spike, `python -m bench.journal_spike`: docs/design/journal.md
    sends callers reads life command mailboxes deferred lateness delivery waiters web mcp
               one file for each kind of work measured
    stamped    the adapter that says when it was asked to post
    neighbours what others took of the machine meanwhile
    figures    what was measured, the ratios and their floors
    report     the table, the JSON file, the comparison with an earlier one
"""

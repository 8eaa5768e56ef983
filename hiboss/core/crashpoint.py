"""Named points in the code where a test can kill the daemon as `kill -9` does.

`HIBOSS_CRASH_AT=store.after_commit:3` kills the process when it passes that point for the
third time. With `@/a/file` behind it, passes count from the moment that this file exists: a daemon
passes some points at its start, and how often may change. Without the variable a crash point costs
one comparison.
"""

from __future__ import annotations

import os
import signal

BEFORE_WRITE = "store.before_write"
IN_GROUP = "store.in_group"
AFTER_COMMIT = "store.after_commit"
CLAIMED = "delivery.claimed"
POSTED = "delivery.posted"  # confirmed by the platform, not stored yet
MOVED = "delivery.moved"  # the platform said that the chat has another id, that is not stored yet
SETTLED = "delivery.settled"
LIVE_BEGUN = "live.begun"  # the row is stored, nothing is posted yet
LIVE_POSTED = "live.posted"  # confirmed by the platform, its id is not stored yet
LIVE_NOTED = "live.noted"  # its id is stored
LIVE_BECAME = "live.became"  # it has the text of the answer, which is not stored yet
LIVE_DELETED = "live.deleted"  # gone from the platform, its row is still there
CHANGE_PLANNED = "change.planned"  # the steps of a changed message are stored, none is done
CHANGE_MADE = "change.made"  # a post was changed, deleted or added on the platform, that is not stored yet
CHANGE_NOTED = "change.noted"  # one step is stored as done
REACTED = "change.reacted"  # the platform shows a reaction of an agent, that is not stored yet
ARRIVING = "scheduler.arriving"
ARRIVED = "scheduler.arrived"
ASK_CREATED = "ask.created"  # the question is stored, the asker does not know its id yet
ASK_SETTLED = "ask.settled"  # by an answer or a cancel, nobody knows that yet
ASK_WOKEN = "ask.woken"  # a reminder or the end of an ask is stored
TAKEN = "intake.taken"  # updates are stored, nothing is digested or acted on yet
FACTS_STORED = "webhooks.facts_stored"  # facts for a webhook are in envelopes, its lane is not woken yet
COMMANDED = "intake.commanded"  # a command of the boss was carried out, that is not stored yet
DIGESTED = "intake.digested"  # the adapter has said what it means, that is not stored yet
FOLDER_TAKEN = "folder.taken"
FOLDER_RECEIVED = "folder.received"  # its message is stored, the file is still there
MEDIA_COPIED = "media.copied"  # complete, under a temporary name
MEDIA_PLACED = "media.placed"  # under its final name, the message is not stored yet
UPLOAD_WRITTEN = "upload.written"  # on disk, its row is not stored yet
UPLOAD_USED = "upload.used"  # its row is gone, and its file is still there
RUN_BEGUN = "runner.begun"
RUN_ASKED = "runner.asked"  # what it asks people is stored, and its program waits
RUN_STARTED = "runner.started"  # its process runs, its pid is not stored yet
RUN_SESSION = "runner.session"  # its session is stored, and the provider goes on
RUN_ANSWERED = "runner.answered"  # it has answered, nothing is settled yet
RUN_SET_ASIDE = "runner.set_aside"  # it is stored that it ends for another message, and it still works
STEER_HELD = "runner.steer_held"  # mail for a turn that goes on is held, and it was not given
STEER_GIVEN = "runner.steer_given"  # the turn has it, that is not stored yet
RUN_SETTLED = "runner.settled"
ATTACHED_SUBMITTED = "attached.submitted"  # an open session has a turn, and was not told of it yet
ATTACHED_TOLD = "attached.told"  # it was told, by a door of its harness
ATTACHED_SEEN = "attached.seen"  # it is stored that it has the mail, and its hook has no answer yet
CONTROLLED = "control.stored"  # a control is stored, no process has been told
BREAKER_PULLED = "breaker.pulled"  # it is stored, no process has been ended
BREAKER_FLAGGED = "breaker.flagged"  # the command line has left its flag, no process has been ended
BREAKER_OBEYED = "breaker.obeyed"  # it is stored, the flag of the command line is still there
BREAKER_RELEASED = "breaker.released"  # it is stored, nobody has been woken
SETUP_PROFILES = "setup.profiles_written"

_where, _, _armed_by = os.environ.get("HIBOSS_CRASH_AT", "").partition("@")
_chosen, _, _count = _where.partition(":")
_passes_left = int(_count or 1)


def crashpoint(name: str) -> None:
    """Kill this process if the test chose this point and it was passed often enough."""
    if name != _chosen or (_armed_by and not os.path.exists(_armed_by)):
        return
    global _passes_left
    _passes_left -= 1
    if _passes_left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

"""Many long random stories about mailboxes and groups, compared with the plain model of the property test.

`make soak SOAK=tests.acceptance.mailboxes_soak ARGS="--stories 50"` prints the seed of each story. When the
model and the daemon disagree it prints the shortest part of the story that shows it, as lines of Python.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from tests.support.mailbox_group_story import GroupStory
from tests.support.mailbox_scene import Scene
from tests.support.mailbox_story import MailboxStory
from tests.support.mailbox_walks import failure, shortened, told, walk

STORIES = (MailboxStory, GroupStory, GroupStory)


def tell(seed: int, length: int) -> str | None:
    """Tell one story; return the shortest part of it that fails, and why."""
    story = STORIES[seed % len(STORIES)]
    steps = walk(story, seed, length)
    found = failure(story, steps)
    if found is None:
        return None
    _say(f"seed {seed}: {found}\nlooking for a shorter story")
    fewer = shortened(story, steps)
    return f"{told(story, fewer)}\n{failure(story, fewer)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=80, help="of a story")
    parser.add_argument("--seed", type=int, help="tell only the story with this seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no story after that")
    given = parser.parse_args(arguments)
    seeds = [random.randrange(2**32) for _ in range(given.stories)] if given.seed is None else [given.seed]
    failed, begin = 0, time.monotonic()
    for seed in seeds:
        if time.monotonic() - begin > given.seconds:
            break
        found = tell(seed, given.steps)
        failed += found is not None
        _say(f"seed {seed}: " + ("as the model says" if found is None else f"FAILED\n{found}"))
    _say("\n".join(f"{what}: {number}" for what, number in sorted(Scene.answers.items())))
    _say(f"steps: {MailboxStory.steps}\nstories-failed: {failed}")
    return min(failed, 1)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

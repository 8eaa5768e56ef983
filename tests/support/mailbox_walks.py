"""Long random walks through the steps of a story, and the shortest part of one that still fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.support.mailbox_story import Choice, MailboxStory, Several

Step = tuple[str, dict[str, Any]]


def walk(story: type[MailboxStory], seed: int, length: int) -> list[Step]:
    """Return so many steps, chosen by a seed."""
    chance = random.Random(seed)
    rules = story.walked()
    names, weights = list(rules), [one.weight for one in rules.values()]
    found: list[Step] = [(name, dict(given)) for name, given in story.opening]
    for name in chance.choices(names, weights, k=length):
        found.append((name, {key: _chosen(chance, one) for key, one in rules[name].choices.items()}))
    return found


def _chosen(chance: random.Random, choice: Choice) -> Any:
    if isinstance(choice, Several):
        return [chance.randrange(200) for _ in range(chance.randint(choice.least, choice.most))]
    one = chance.choice(choice)
    return chance.choice(one) if isinstance(one, range) else one


def failure(story: type[MailboxStory], steps: Sequence[Step]) -> str | None:
    """Take these steps; return what was found wrong."""
    state = story()
    try:
        try:
            for name, given in steps:
                getattr(state, name)(**given)
        finally:
            state.teardown()
    except AssertionError as error:
        return str(error)
    return None


def shortened(story: type[MailboxStory], steps: Sequence[Step]) -> list[Step]:
    """Return a part of these steps that still fails, without many that are not needed."""
    left = list(steps)
    size = max(1, len(left) // 2)
    while size:
        start = 0
        while start < len(left):
            fewer = left[:start] + left[start + size :]
            if failure(story, fewer) is not None:
                left = fewer
            else:
                start += size
        size //= 2
    return left


def told(story: type[MailboxStory], steps: Sequence[Step]) -> str:
    """Return steps as lines of Python."""
    lines = [
        f"state.{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        for name, given in steps
    ]
    return "\n".join([f"state = {story.__name__}()", *lines, "state.teardown()"])

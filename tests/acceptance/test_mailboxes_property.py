"""Several agents, users and the boss do at random what can be done with mail: a plain model says the same.

HIBOSS_STORIES=20 tells twenty times as many stories; mailboxes_soak.py tells longer ones, of random seeds.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support import bulk
from tests.support.mailbox_group_story import GroupStory
from tests.support.mailbox_story import MailboxStory
from tests.support.mailbox_walks import failure, told, walk

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("HIBOSS_STORIES", "1"))
SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=bulk.number(3, 5) * TIMES,
    stateful_step_count=40,
    phases=[
        Phase.generate
    ],  # looking for a shorter story takes minutes; mailbox_walks.shortened does it faster
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("story", [MailboxStory, GroupStory])
def test_everybody_is_shown_what_a_plain_model_says(story: type[MailboxStory]) -> None:
    run_state_machine_as_test(story, settings=SETTINGS)


@pytest.mark.parametrize("seed", range(4 * TIMES))
def test_so_it_is_after_many_steps(seed: int) -> None:
    story = GroupStory if seed % 4 else MailboxStory
    steps = walk(story, seed, 50)
    found = failure(story, steps)
    assert found is None, f"{told(story, steps)}\n{found}"

"""What failed and is tried again keeps its order: nothing of a conversation overtakes what was written before it."""

from __future__ import annotations

from pathlib import Path

from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import hire, idle_after, idle_after_send

READS = """
if os.path.exists(os.path.join(HERE, "broken")): sys.exit("nothing works")
note(TEXTS)
print("NO_REPLY")
"""


@frozen(quiet=False)
async def test_mail_that_failed_is_read_in_its_order_after_the_repair(daemon: InProcessDaemon) -> None:
    await daemon.register("zoe")
    kai = await hire(daemon, "kai", READS)
    broken = Path(daemon.home.path).parent / "broken"
    await idle_after_send(daemon, "agent:kai", text="works")
    assert kai.notes() == [["works"]]

    broken.touch()
    await idle_after_send(daemon, "agent:kai", text="one")
    await idle_after(daemon, seconds=6)  # it fails again, and waits for longer than those that follow
    await idle_after_send(daemon, "agent:kai", text="two")
    await idle_after_send(daemon, "agent:kai", text="three")
    await idle_after_send(daemon, "agent:kai", text="of zoe", who="zoe")
    broken.unlink()
    await idle_after(daemon, seconds=6)
    assert kai.notes()[1:] == [["of zoe"]]  # another conversation waits for none of them
    await idle_after(daemon, seconds=34)
    assert kai.notes()[2:] == [["one"], ["two"], ["three"]] or kai.notes()[2:] == [["one"], ["two", "three"]]

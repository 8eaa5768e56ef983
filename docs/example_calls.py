"""The calls that are the examples of the reference: one story, in one home.

The first call of an operation is its example. `docs/record_examples.py` makes the calls to a daemon and
keeps the answers. The clock of that daemon stands still, except where the story moves it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from hiboss.agents import process_control

SLOW = "sh -c 'echo Wait.; exec sleep 600'"
ASKS = """
import json, sys
sys.stdin.readline()
what = {"tool": "Bash", "detail": "rm a b c", "subject": "rm a b c", "options": ["yes", "no"]}
print(json.dumps({"hiboss": "ask", "id": 1, "text": "May I delete three files?", **what}), flush=True)
sys.stdin.readline(), sys.stdin.readline()
print('{"hiboss": "final", "text": "Two are gone."}', flush=True)
"""


class Teller(Protocol):
    """Makes the calls of the story."""

    directory: Path  # for files and folders that the story needs

    def __call__(self, method: str, who: str | None = "boss", **params: Any) -> Awaitable[Any]:
        """Call an operation as somebody. `from_` and `with_` stand for `from` and `with`."""

    async def upload(self, who: str, name: str, content: bytes) -> None:
        """Upload a file as somebody, as a door does that takes bytes."""

    async def until(self, found: Callable[[Any], Any], method: str, **params: Any) -> Any:
        """Call an operation as the boss until `found` returns something for its answer; no example."""

    async def move(self, **by: float) -> None:
        """Let time pass."""


async def tell(ask: Teller) -> None:
    """Make every call."""
    await _set_up(ask)
    await _people(ask)
    await _mail(ask)
    await _fetching(ask)
    await _schedules(ask)
    await _channels(ask)
    await _webhooks(ask)
    await _runs(ask)
    await _questions(ask)
    await _asks(ask)
    await _attached(ask)
    await _conversations(ask)
    await _ends(ask)


async def _set_up(ask: Teller) -> None:
    await ask("daemon.ping", None)
    await ask("setup.check", None)
    await ask("setup.execute", None, boss_name="Ada", timezone="Europe/Berlin", agent_name="nex")
    await ask("auth.login")
    await ask("event.subscribe", "nex", topics=["envelope.arrived"])
    await ask("rpc.discover", None)
    await ask("daemon.time", None)
    await ask("config.show", None)
    await ask("config.reload")
    await ask("boss.set", name="Ada")
    await ask("boss.get", "nex")


async def _people(ask: Teller) -> None:
    await ask("agent.register", name="scout", role="reviewer", description="reads what others wrote")
    await ask("agent.set", name="nex", role="writer")
    await ask("agent.list", "nex", role="reviewer")
    await ask("agent.self", "nex")
    await ask("agent.instructions", "nex", name="nex")
    await ask("agent.briefing", "nex")
    await ask("agent.heartbeat", "nex")
    await ask("agent.pause", name="scout", reason="It is on holiday.")
    await ask("agent.resume", name="scout")
    await ask("user.register", name="mia", display="Mia")
    await ask("user.list")
    await ask("web.link", name="mia")
    await ask("web.logout", all=True)
    await ask("presence.get", address="scout")
    await ask("presence.list")
    await ask("agent.notify", name="nex", when="finished")
    await ask("agent.notify.list")
    await ask("agent.notify.remove", name="nex")
    await ask("permission.policy.set", policy={"agent.list": "standard"})
    await ask("permission.policy.get", "nex")
    await ask("agent.permission.set", name="scout", level="privileged")
    await ask("agent.permission.get", "nex", name="scout")


async def _mail(ask: Teller) -> None:
    plan = ask.directory / "plan.txt"
    plan.write_text("1. read\n2. write\n")
    await ask(
        "envelope.send", to="agent:nex", subject="plan", text="Please review it.", attachments=[str(plan)]
    )
    await ask("envelope.send", "nex", to=["agent:scout", "user:mia"], text="Who has time today?")
    await ask("envelope.send", "scout", to="agent:nex", reply_to="e2", text="I have.")
    await ask.upload("nex", "notes.txt", b"1. read\n")
    await ask("upload.list", "nex")
    await ask("upload.delete", "nex", ids=["u1"])
    await ask("envelope.list", "nex", unread=True, count=True)
    await ask("envelope.unread", "nex")
    await ask("envelope.get", "nex", id="e1")
    await ask("envelope.trace", "nex", id="e2")
    await ask("envelope.read", "nex", ids=["e1"])
    await ask("message.markRead", "mia", message_ids=["m2"], session="phone")
    await ask("envelope.snooze", "mia", ids=["e3"], until="+1h")
    await ask("envelope.unsnooze", "mia", ids=["e3"])
    await ask("envelope.archive", "mia", ids=["e3"])
    await ask("envelope.restore", "mia", ids=["e3"])
    await ask("envelope.trash", "mia", ids=["e3"])
    await ask("envelope.send", "nex", to="agent:scout", text="Tomorrow then.", deliver_at="+20h")
    await ask("envelope.cancel", "nex", ids=["e5"])
    await ask("reaction.set", "nex", id="e4", emoji="👍")
    await ask("reaction.remove", "nex", id="e4")
    await ask("message.edit", "nex", id="e2", text="Who has time on Friday?")
    await ask("message.delete", "nex", id="e5", reason="It was no question any more.")
    await ask("message.restore", "nex", id="e5")
    await ask("message.list", "nex", thread_id="e2", page_size=1)
    await ask("message.get", "nex", message_id="m3")
    await ask("thread.list", "nex")
    await ask("thread.get", "nex", thread_id="t2", page_size=1)
    await ask("thread.chain", "nex", id="e4")


async def _fetching(ask: Teller) -> None:
    await ask("event.unsubscribe", "nex", subscription=1)
    await ask("turn.preview", "nex")
    await ask("envelope.wait", "nex", timeout="55s")
    await ask("envelope.watch", "scout", timeout="55s")
    await ask("envelope.poll", "scout", session="terminal")
    await ask("envelope.claim", "nex", limit=2, lease="10m")
    await ask("envelope.release", "nex", ids=["e4"], claim="k1")
    await ask("envelope.ack", "nex", ids=["e1"], claim="k1")


async def _schedules(ask: Teller) -> None:
    await ask("cron.explain", None, cron="0 9 * * MON-FRI", count=2)
    await ask(
        "cron.create", "nex", cron="0 9 * * MON-FRI", to="agent:scout", text="What is new?", name="daily"
    )
    await ask("cron.set", "nex", id="s1", priority="low")
    await ask("cron.list", "nex")
    await ask("cron.run", "nex", id="s1")
    await ask("cron.show", "nex", id="s1")
    await ask("cron.disable", "nex", id="s1")
    await ask("cron.enable", "nex", id="s1")
    await ask("cron.delete", "nex", id="s1")


async def _channels(ask: Teller) -> None:
    await ask("adapter.list")
    await ask(
        "agent.bind", name="nex", adapter_type="folder", settings={"path": str(ask.directory / "reports")}
    )
    await ask.until(lambda answer: answer["bindings"][0]["state"] == "running", "agent.bindings")
    await ask("agent.bindings", "nex")
    await ask("lane.pause", address="channel:folder:reports")
    await ask("lane.list")
    await ask("lane.retry", address="channel:folder:reports")
    await ask("daemon.status", None)
    await ask("daemon.metrics")
    await ask("lane.resume", address="channel:folder:reports")
    await ask("envelope.send", "nex", to="channel:folder:reports", text="All is well.")
    await ask.until(lambda answer: answer["envelope"]["status"] == "done", "envelope.get", id="e7")
    await ask("boss.pair")
    await ask("contact.list", state="allowed")
    await ask("contact.approve", contact="channel:folder:reports")
    await ask("contact.route", contact="channel:folder:reports", agent="nex")
    await ask("contact.block", contact="channel:folder:reports")
    await ask("agent.unbind", name="nex", adapter_type="folder")


async def _webhooks(ask: Teller) -> None:
    await ask("webhook.create", name="ci", to="agent:nex", template="{repository.name}: {action}")
    facts = {"topics": ["run.ended", "ask.created"], "addresses": ["agent:nex"]}
    await ask("webhook.subscribe", name="audit", url="https://example.org/hiboss", **facts)
    await ask.until(
        lambda answer: {one["state"] for one in answer["webhooks"]} == {"running"}, "webhook.list"
    )
    await ask("webhook.list")
    await ask("webhook.get", name="ci")
    await ask("webhook.set", name="ci", template="", subject="{repository.full_name}")
    await ask("webhook.rotate", name="ci")
    await ask("webhook.delete", name="ci")
    await ask("webhook.unsubscribe", name="audit")


async def _runs(ask: Teller) -> None:
    await ask("provider.list")
    await ask("agent.register", name="echo", provider="command", settings={"command": "echo Done."})
    await ask("envelope.send", to="agent:echo", text="Say when you are done.")
    done = {"agent": "echo", "status": "completed"}
    await ask.until(lambda answer: answer["runs"], "run.list", **done)
    await ask("run.list", agent="echo")
    await ask("run.get", id="r1")
    await ask("agent.background", task="Count the files.", agent="echo")
    await ask.until(lambda answer: len(answer["runs"]) == 2, "run.list", **done)
    await ask("agent.register", name="slow", provider="command", settings={"command": SLOW})
    await ask("envelope.send", to="agent:slow", text="Take your time.")
    (run,) = await ask.until(lambda answer: answer["runs"], "run.list", agent="slow", status="running")
    await ask.until(lambda answer: answer["parts"], "run.tail", id=run["id"])
    await ask("run.tail", id=run["id"])
    await ask("conversation.news", with_="agent:slow", after=1)
    await ask("run.pause", id=run["id"])
    await ask("run.resume", id=run["id"])
    await ask("control.send", event="stream.pause", run=run["id"], reason="Let me look at it first.")
    await ask("control.send", event="stream.resume", run=run["id"])
    await ask("control.list", agent="slow")
    await ask("agent.pause", name="slow", reason="It waits for the new machine.")
    await ask("run.cancel", id=run["id"], reason="no longer needed")
    await ask.until(lambda answer: answer["runs"], "run.list", agent="slow", status="cancelled")
    await ask("envelope.retry", ids=run["envelopes"])
    await ask("agent.status", name="slow")
    await ask("agent.check", name="slow")
    await ask("agent.sessions", name="slow")
    await ask("agent.refresh", name="slow")
    await ask("agent.team")
    await ask("breaker.pull", reason="It costs too much.")
    await ask("breaker.status")
    await ask("breaker.release")


async def _questions(ask: Teller) -> None:
    program = ask.directory / "asks.py"
    program.write_text(ASKS)
    settings = {"command": f"{sys.executable} {program}", "input": "open"}
    await ask("agent.register", name="asks", provider="command", settings=settings)
    await ask("envelope.send", to="agent:asks", text="Clean up.")
    (run,) = await ask.until(lambda answer: answer["runs"], "run.list", agent="asks", status="running")
    (asked,) = await ask.until(lambda answer: answer["questions"], "run.get", id=run["id"])
    await ask("run.steer", id=run["id"], text="Leave the newest one.")
    await ask("ask.answer", id=asked["id"], choice="yes", scope="rule")
    await ask.until(lambda answer: answer["runs"], "run.list", agent="asks", status="completed")
    (rule,) = (await ask("ask.rules", agent="asks"))["rules"]
    await ask("ask.rule.remove", number=rule["number"])


async def _asks(ask: Teller) -> None:
    options = {"options": ["now", "tomorrow"], "timeout": "1h", "default": "tomorrow"}
    made = await ask("ask.create", "nex", question="Shall I publish it?", **options)
    await ask("ask.get", "nex", id=made["ask"]["id"])
    await ask("ask.list")
    await ask("ask.wait", "nex", id=made["ask"]["id"], timeout="0.1s")
    await ask("ask.answer", id=made["ask"]["id"], choice="now", comment="Well done.")
    other = await ask("ask.create", "nex", question="And the photos?")
    await ask("ask.cancel", "nex", id=other["ask"]["id"], reason="I found them.")


async def _attached(ask: Teller) -> None:
    own = os.getpid()
    session = {"client": "claude", "session": "0d9583da-cf2c-4aea-8df0-8cbc0974a8de", "pid": own}
    started = process_control.started_at(own)
    await ask("attached.start", None, **session, pid_started=started, directory="/home/ada/shop")
    await ask("envelope.send", to="agent:shop", text="How is the build?")
    nudge = (await ask("attached.wait", "desk"))["nudge"]
    await ask("attached.prompt", "desk", event="9c1f", prompt=nudge)
    await ask("attached.step", "desk", tool="Bash")
    asking = asyncio.create_task(
        ask("attached.permit", "desk asks", tool="Bash", input='{"command": "make deploy"}')
    )
    (asked,) = await ask.until(lambda answer: answer["asks"], "ask.list", state="open")
    await ask("ask.answer", id=asked["id"], choice="allow")
    await asking
    await ask("attached.stop", "desk", event="9c20", text="All is green.")
    await ask("attached.list")
    await ask("attached.break", "desk", event="9c21")
    await ask("agent.detach", name="shop")
    await ask("attached.start", None, **session, pid_started=started, directory="/home/ada/shop")
    await ask("attached.end", "desk", event="9c22")


async def _conversations(ask: Teller) -> None:
    found = await ask("conversation.messages", with_="agent:echo")
    await ask("presence.typing", conversation=found["conversation"])
    await _chat(ask)
    await _groups(ask)


async def _chat(ask: Teller) -> None:
    asked = await ask("chat.post", agent="nex", content="Is main green?", mime="text/plain")
    answer = await ask("chat.post", "nex", content="It is.", reply_to=asked["id"], key="green-1")
    found = await ask("chat.read", "nex", limit=1, subscriber="loop", after_id=asked["id"])
    assert found["last_id"] == answer["id"]
    await ask("chat.ack", "nex", id=found["last_id"], subscriber="loop")
    await ask("chat.status", agent="nex")


async def _groups(ask: Teller) -> None:
    about = {"description": "Who decides what we build.", "metadata": {"wiki": "/core"}}
    members = ["agent:nex", "user:mia"]
    made = await ask("conversation.create", name="core-team", participants=members, history=10, **about)
    await ask("envelope.send", to="group:core-team", text="What is next, @nex?")
    await ask("participant.add", conversation="core-team", address="agent:echo", respond="people")
    await ask("participant.role", conversation="core-team", address="user:mia", role="admin")
    await ask("conversation.get", "mia", conversation="core-team")
    await ask("conversation.list", "mia", type="group", count=True)
    await ask("conversation.markRead", "mia", conversation="core-team", up_to_seq=1)
    await ask("conversation.set", conversation="core-team", open=True)
    await ask("participant.remove", conversation="core-team", address="agent:nex")
    await ask("participant.join", "nex", conversation="core-team")
    await ask("participant.leave", "nex", conversation="core-team")
    await ask("participant.transfer", conversation="core-team", address="user:mia")
    await ask("conversation.archive", conversation=made["conversation"]["id"])
    await ask("conversation.delete", "mia", conversation="core-team", reason="We meet in person.")


async def _ends(ask: Teller) -> None:
    await ask("user.token.rotate", name="mia")
    await ask("user.delete", name="mia")
    await ask("agent.token.rotate", name="scout")
    await ask("agent.token.revoke", name="scout")
    await ask("agent.delete", name="scout")
    await ask("boss.token.rotate")
    await ask("mcp.start", None)
    await ask("daemon.stop", None)

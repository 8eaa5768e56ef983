"""What a model does with the tools of hiboss in each real harness: tests to inherit from.

class TestClaude(McpContract):
    rig_class = ClaudeRig
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hiboss.mcp.tools import TABLE
from hiboss.testing.model_server import ModelServer, Say
from tests.real.mcp_rigs import McpRig, open_asks
from tests.real.programs import Programs
from tests.support.parties import checked_daemon
from tests.support.waits import wait_until

DONE = Say("All is done.")


class McpContract:
    """All tests. A rig is installed for agent nex."""

    rig_class: ClassVar[type[McpRig]]

    @pytest.fixture
    def rig(self, tmp_path: Path, programs: Programs, server: ModelServer) -> Iterator[McpRig]:
        with checked_daemon(tmp_path) as daemon:
            made = self.rig_class(tmp_path, programs, server, daemon)
            made.install("--agent", "nex")
            self.allow(made)
            yield made

    def allow(self, rig: Any) -> None:
        """Let the tools run without a question, where the command of a turn does not say it."""

    def test_the_model_is_offered_all_tools(self, rig: McpRig) -> None:
        rig.script(DONE)
        with rig.turn() as turn:
            pass
        assert turn.said == "All is done."
        offered = json.dumps(rig.server.turns[-1].body)
        for name in TABLE:
            assert json.dumps(rig.tool(name)) in offered, name
        assert "hiboss" not in turn.complaints, turn.complaints

    def test_it_sends_mail_to_the_boss(self, rig: McpRig) -> None:
        [sent] = rig.take(rig.use("send", to=["user:boss"], text="two herons"), DONE)
        envelope = rig.ada.get(sent["ids"][0])
        assert (envelope["from"], envelope["to"], envelope["text"]) == (
            "agent:nex",
            "user:boss",
            "two herons",
        )
        assert rig.ada.ids(unread=True) == sent["ids"]

    def test_it_reads_its_mail_and_acknowledges_it(self, rig: McpRig) -> None:
        told = rig.ada.tell(rig.nex, text="How is the build?")
        rig.script(rig.use("inbox"), rig.use("claim"), rig.use("team", hold=True))
        with rig.turn() as turn:
            turn.held()
            shown, claimed = turn.results
            [mail] = shown["envelopes"]
            assert (mail["id"], mail["text"]) == (told, "How is the build?")
            assert [one["id"] for one in claimed["envelopes"]] == [told]
            rig.server.script(
                rig.use("reply", id=told, text="All is green."),
                rig.use("ack", ids=[told], claim=claimed["claim"]),
                rig.use("inbox"),
                DONE,
            )
            rig.server.go_on()
        *_, replied, acknowledged, empty = turn.results
        assert rig.ada.get(replied["ids"][0])["text"] == "All is green."
        assert "error" not in acknowledged and empty["envelopes"] == []
        assert rig.nex.ids(unread=True) == []

    def test_it_reads_the_chat_and_posts(self, rig: McpRig) -> None:
        asked = rig.ada.call("chat.post", agent="nex", content="Are you there?")
        read, acknowledged, posted = rig.take(
            rig.use("chat_read_since"),
            rig.use("chat_ack", id=asked["id"]),
            rig.use("chat_assistant_post", content="**Yes.**", reply_to=asked["id"]),
            DONE,
        )
        [entry] = read["messages"]
        assert (entry["id"], entry["author"], entry["content"]) == (asked["id"], "user", "Are you there?")
        assert "error" not in acknowledged
        page = rig.ada.call("chat.read", agent="nex", after_id=asked["id"])
        [answer] = page["messages"]
        assert (answer["id"], answer["author"], answer["content"]) == (posted["id"], "assistant", "**Yes.**")
        # The position is kept for the next session.
        [rest] = rig.take(rig.use("chat_read_since"), DONE)
        assert [one["id"] for one in rest["messages"]] == [posted["id"]]

    def test_it_reads_resources(self, rig: McpRig) -> None:
        rig.ada.call("chat.post", agent="nex", content="Are you there?")
        rig.script(rig.reads("ui://chat/inbox"), DONE)
        with rig.turn():
            pass
        assert "Are you there?" in rig.server.turns[-1].tool_results[-1]

    def test_the_answer_of_the_boss_comes_back(self, rig: McpRig) -> None:
        options = ["blue", "green"]
        rig.script(rig.use("ask", question="Which colour?", options=options), DONE)
        with rig.turn() as turn:
            wait_until(lambda: open_asks(rig.ada))
            [ask] = open_asks(rig.ada)
            assert (ask["question"], ask["options"]) == ("Which colour?", options)
            rig.ada.call("ask.answer", id=ask["id"], choice="green")
        [found] = turn.results
        assert (found["id"], found["state"], found["answer"]) == (ask["id"], "answered", "green")

    def test_a_refusal_says_why(self, rig: McpRig) -> None:
        wrong = rig.use("send", to=["agent:nobody"], text="hello")
        human = rig.use("chat_human_post", content="I am the boss")
        unknown, forbidden = rig.take(wrong, human, DONE)
        assert "unknown_recipient" in str(unknown) and "there is no agent" in str(unknown)
        assert "needs the boss's token" in str(forbidden)
        assert rig.ada.call("chat.read", agent="nex")["messages"] == []

    def test_after_a_kill_of_the_worker_the_next_call_works(self, rig: McpRig) -> None:
        first = rig.use("send", to=["user:boss"], text="before")
        rig.script(first, rig.use("send", to=["user:boss"], text="after", hold=True))
        with rig.turn() as turn:
            turn.held()
            before = rig.worker()
            rig.kill_worker()
            rig.server.script(rig.use("inbox"), DONE)
            rig.server.go_on()
        one, other, inbox = turn.results
        assert [rig.ada.get(sent["ids"][0])["text"] for sent in (one, other)] == ["before", "after"]
        assert inbox["envelopes"] == [] and rig.worker() != before

    def test_a_call_whose_worker_is_killed_is_answered_and_the_next_one_works(self, rig: McpRig) -> None:
        asks = rig.use("ask", question="Which colour?", options=["blue", "green"])
        rig.script(asks, rig.use("inbox"), DONE)
        with rig.turn() as turn:
            wait_until(lambda: open_asks(rig.ada))
            rig.kill_worker()
        lost, inbox = turn.results
        assert "was restarted before it answered" in lost
        assert inbox["envelopes"] == []

    def test_after_a_restart_of_the_daemon_the_next_call_works(self, rig: McpRig) -> None:
        rig.script(rig.use("inbox"), rig.use("send", to=["user:boss"], text="after", hold=True))
        with rig.turn() as turn:
            turn.held()
            rig.daemon.kill()
            rig.daemon.start()
            rig.server.script(DONE)
            rig.server.go_on()
        *_, sent = turn.results
        assert rig.ada.get(sent["ids"][0])["text"] == "after"

    def test_a_session_without_the_entry_has_no_tools(self, rig: McpRig) -> None:
        rig.hiboss("mcp", "remove", "--client", rig.client)
        rig.server.script(DONE)
        with rig.turn():
            pass
        assert "hiboss" not in json.dumps(rig.server.turns[-1].body).replace(str(rig.workspace), "")

"""Answers of runs where the parties, or the chat, are not those of a plain conversation of two."""

from __future__ import annotations

import json
from pathlib import Path

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.live_places import Writer
from tests.support.parties import agent
from tests.support.phones import Phone
from tests.support.python_agents import Boss, Team
from tests.support.scripted_channels import Place
from tests.support.waits import wait_until


def test_what_an_agent_sent_him_in_reply_is_not_sent_to_him_again_as_its_answer(
    team: Team, ada: Boss, daemon: RunningDaemon, tmp_path: Path
) -> None:
    other = agent(daemon)  # it leads the account
    replies = 'call("envelope.send", reply_to=re.search(r"envelope-id: (e[0-9]+)", TURN)[1], text="done")'
    writer = team.hire(f'{replies}; print("done")')
    phone = Phone(tmp_path)
    phone.bound(daemon, other)
    phone.bind(writer)  # type: ignore[arg-type] # it only needs a name and a daemon
    ada.call("boss.set", reach=phone.address)
    phone.comes_in("1", text=f"@{writer.name} do it", message="7")
    wait_until(lambda: [one["status"] for one in writer.runs()] == ["completed"])
    assert [one["text"] for one in ada.list() if one["from"] == writer.address] == ["done"]
    phone.wait_for(f"{writer.name}:\ndone")
    ada.call("boss.set", reach="")


def test_an_answer_follows_its_chat_that_got_another_id_while_the_agent_worked(
    team: Team, daemon: RunningDaemon, tmp_path: Path
) -> None:
    writer = Writer(team, "writer")
    place = Place(tmp_path)
    place.settings(places=["g", "g2"])
    place.bound(daemon, writer.agent)  # type: ignore[arg-type] # it only needs a name and a daemon
    place.comes_in("1", text="in the new", place="g2", group="ops", message="1")
    wait_until(lambda: writer.agent.runs() and writer.status() == "running")
    place.comes_in(
        "2", kind="membership", membership="renamed", place="g", group="ops", renamed_to="g2", act=True
    )
    wait_until(lambda: not (place.root / "inbox" / "2.json").exists())
    writer.goes_on()
    wait_until(lambda: writer.status() == "completed")
    wait_until(lambda: place.posts())
    assert [(one["place"], one["chunk"]) for one in place.posts()] == [("g2", "well…\nand done")]


def test_what_a_run_asks_is_told_in_the_chat_where_he_wrote_whatever_else_is_posted_there(
    daemon: RunningDaemon, ada: Boss, tmp_path: Path
) -> None:
    ask = {"hiboss": "ask", "text": "May I?", "options": ["yes", "no"]}
    program = tmp_path / "asks.sh"
    program.write_text(f"read turn\necho '{json.dumps(ask)}'\nread answer\necho 'then I did'\n")
    settings = {"command": f"sh {program}", "input": "open"}
    asking = agent(daemon, provider="command", settings=settings)
    phone = Phone(tmp_path)
    phone.bound(daemon, asking)
    ada.call("boss.set", reach=phone.address, forward="off")
    phone.comes_in("1", text="clean up", message="7")
    phone.post_of("May I?")
    (ask,) = ada.call("ask.list")["asks"]
    ada.call("ask.answer", id=ask["id"], choice="yes")
    phone.post_of("then I did")
    ada.call("boss.set", reach="", forward="important")

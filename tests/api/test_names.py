"""Names in requests: a bare name means the agent, person or group that has it, wherever an address is wanted."""

from __future__ import annotations

from hiboss.core.errors import DaemonUnreachable
from hiboss.testing.running_daemon import Answered, RunningDaemon
from tests.support.parties import Party, agent, agents, boss, person, stored
from tests.support.raising import raised


def delete(daemon: RunningDaemon, party: Party) -> None:
    noun = party.address.partition(":")[0]
    boss(daemon).call(f"{noun}.delete", name=party.name)


# --- recipients and senders ----------------------------------------------------------


def test_a_message_to_the_bare_name_of_an_agent_reaches_the_agent(ada: Party, bob: Party) -> None:
    sent = ada.send(bob.name)
    assert bob.ids() == sent["ids"] and bob.get(sent["ids"][0])["to"] == bob.address


def test_a_message_to_the_bare_name_of_a_person_reaches_the_person(daemon: RunningDaemon) -> None:
    (ada,), zoe = agents(daemon, 1), person(daemon, "zoe")
    sent = ada.send("zoe")
    assert zoe.ids() == sent["ids"] and zoe.get(sent["ids"][0])["to"] == "user:zoe"


def test_a_message_to_boss_reaches_the_boss(daemon: RunningDaemon, ada: Party) -> None:
    (number,) = ada.send("boss")["ids"]
    assert boss(daemon).get(number)["to"] == "user:boss"


def test_a_bare_name_is_found_whatever_its_case_and_shown_as_registered(daemon: RunningDaemon) -> None:
    ada, bob = agent(daemon), agent(daemon, "Code-Review")
    numbers = [ada.send(name)["ids"][0] for name in ("code-review", "CODE-REVIEW", "Code-Review", "BOSS")]
    assert [ada.get(number)["to"] for number in numbers] == [*[bob.address] * 3, "user:boss"]


def test_a_bare_name_and_a_whole_address_are_one_conversation(ada: Party, bob: Party) -> None:
    assert ada.send(bob.name)["conversation"] == ada.send(bob.address)["conversation"]


def test_an_agent_and_a_person_in_one_message_are_both_found_by_name(daemon: RunningDaemon) -> None:
    (ada, bob), kim = agents(daemon, 2), person(daemon, "kim")
    sent = ada.send(bob.name, "kim", "boss")
    assert [ada.get(number)["to"] for number in sent["ids"]] == [bob.address, kim.address, "user:boss"]


def test_a_message_to_a_name_whose_owner_was_deleted_is_refused(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    delete(daemon, bob)
    before = stored(daemon)
    assert ada.refusal("envelope.send", to=bob.name, text="x") == "unknown_recipient"
    assert boss(daemon).refusal("envelope.send", to=ada.name, from_=bob.name, text="x") == "unknown_sender"
    assert stored(daemon) == before


def test_a_name_means_the_one_who_has_it_now_and_not_one_who_had_it(daemon: RunningDaemon) -> None:
    ada, left = agent(daemon), agent(daemon, "robin")
    delete(daemon, left)
    robin = person(daemon, "robin")
    (number,) = ada.send("robin")["ids"]
    assert robin.ids() == [number]
    delete(daemon, robin)
    again = agent(daemon, "robin")
    (number,) = ada.send("robin")["ids"]
    assert again.ids() == [number]


def test_reserved_names_mean_the_same_as_their_addresses(ada: Party) -> None:
    for name in ("system", "background"):
        found = [ada.refusal("envelope.send", to=to, text="x") for to in (name, f"agent:{name}")]
        assert found[0] == found[1]


def test_the_boss_sends_as_anybody_by_bare_name(daemon: RunningDaemon, ada: Party, bob: Party) -> None:
    for name in (ada.name, ada.name.upper(), "boss"):
        boss(daemon).send(bob, from_=name)
    assert [one["from"] for one in bob.list(oldest_first=True)] == [ada.address, ada.address, "user:boss"]


def test_an_agent_may_give_its_own_bare_name_as_sender_and_no_other(ada: Party, bob: Party) -> None:
    (number,) = ada.send(bob, from_=ada.name.upper())["ids"]
    assert bob.get(number)["from"] == ada.address
    assert {
        ada.refusal("envelope.send", to=bob.address, text="x", from_=name) for name in (bob.name, "boss")
    } == {"boss_only"}


# --- schedules -----------------------------------------------------------------------


def test_the_boss_who_names_no_sender_schedules_as_user_boss(daemon: RunningDaemon, ada: Party) -> None:
    made = boss(daemon).call("cron.create", to=ada.name, text="x", every="2h")
    assert (made["from"], made["to"]) == ("user:boss", [ada.address])
    (number,) = boss(daemon).call("cron.run", id=made["id"])["ids"]
    assert ada.get(number)["from"] == "user:boss"


def test_a_schedule_keeps_the_address_that_a_name_meant_when_it_was_made(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    made = boss(daemon).call("cron.create", to=[bob.name, "boss"], from_=ada.name, text="x", every="2h")
    assert (made["from"], made["to"]) == (ada.address, [bob.address, "user:boss"])
    changed = boss(daemon).call("cron.set", id=made["id"], to=ada.name)
    assert (changed["from"], changed["to"]) == (ada.address, [ada.address])


# --- whose box, with whom, which lane ------------------------------------------------


def test_the_boss_looks_into_a_box_by_bare_name(ada: Party, bob: Party, chief: Party) -> None:
    number = ada.tell(bob)
    assert chief.ids(address=bob.name) == [number]
    assert chief.call("turn.preview", address=bob.name)["envelopes"] == [number]
    assert chief.call("envelope.wait", address=bob.name, timeout="30s")["timed_out"] is False
    assert chief.call("envelope.claim", address=bob.name)["envelopes"][0]["id"] == number
    assert chief.call("envelope.ack", ids=[number], address=bob.name)["changed"] == 1


def test_an_agent_may_name_itself_as_the_owner_of_a_box_and_nobody_else(ada: Party, bob: Party) -> None:
    number = bob.tell(ada)
    assert ada.ids(address=ada.name.upper()) == [number]
    assert ada.refusal("envelope.list", address=bob.name) == "boss_only"


def test_mail_is_filtered_by_bare_names_also_of_those_who_left(
    daemon: RunningDaemon, ada: Party, bob: Party, eve: Party
) -> None:
    number = bob.tell(ada)
    eve.tell(ada)
    delete(daemon, bob)
    for sender in (bob.name, bob.address):
        assert [one["id"] for one in ada.list(from_=sender)] == [number]
    assert not ada.list(box="outbox", to=eve.name)


def test_a_conversation_is_shown_by_the_bare_name_of_the_other(
    daemon: RunningDaemon, ada: Party, bob: Party
) -> None:
    number = ada.tell(bob)
    for name in (bob.name, bob.name.upper(), bob.address):
        found = ada.call("conversation.messages", **{"with": name})
        assert [one["id"] for one in found["envelopes"]] == [number]
    delete(daemon, bob)
    assert ada.call("conversation.messages", **{"with": bob.name})["last"] == 1


# --- names of agents -----------------------------------------------------------------


def test_the_whole_address_is_taken_where_the_name_of_an_agent_is_wanted(ada: Party, chief: Party) -> None:
    for method, params in (
        ("agent.status", {}),
        ("agent.instructions", {}),
        ("agent.set", {"role": "reviewer"}),
        ("agent.pause", {}),
        ("agent.resume", {}),
        ("agent.permission.get", {}),
        ("agent.permission.set", {"level": "privileged"}),
    ):
        found = chief.call(method, name=ada.address, **params)
        assert found.get("agent", found)["name"] == ada.name, method
    assert chief.call("run.list", agent=ada.address)["runs"] == []


def test_a_token_rotated_and_an_agent_deleted_by_whole_address_leave_no_old_profile(
    daemon: RunningDaemon, chief: Party
) -> None:
    ada = agent(daemon, profile=True)
    found = chief.call("agent.token.rotate", name=ada.address)
    assert (found["name"], found["profile"]) == (ada.name, daemon.home.profile(ada.name))
    assert daemon.token(ada.name) == found["token"]
    assert (
        chief.call("agent.delete", name=ada.address.replace(ada.name, ada.name.upper()))["name"] == ada.name
    )
    assert not daemon.home.has_profile(ada.name)


def test_an_agent_allowed_to_change_itself_may_write_its_name_in_any_form(
    ada: Party, bob: Party, chief: Party
) -> None:
    chief.call("permission.policy.set", policy={"agent.set": "standard"})
    try:
        assert {
            ada.call("agent.set", name=name, role="r")["name"]
            for name in (ada.name, ada.name.upper(), ada.address)
        } == {ada.name}
        for name in (bob.name, bob.address):
            assert ada.refusal("agent.set", name=name, role="r") == "boss_only"
    finally:
        chief.call("permission.policy.set", policy={})


def test_a_mistyped_whole_address_of_an_agent_is_told_with_the_nearest_name(daemon: RunningDaemon) -> None:
    agent(daemon, "moe")
    error = raised(Answered, boss(daemon).call, "agent.status", says=r"did you mean moe\?", name="agent:mo")
    assert error.stable_code == "unknown_agent"


# --- the provider that an option implies ---------------------------------------------


def test_a_command_or_url_alone_implies_its_provider(daemon: RunningDaemon, chief: Party) -> None:
    for given, provider in (
        ({"settings": {"command": "true"}}, "command"),
        ({"settings": {"url": "http://127.0.0.1:1/"}}, "webhook"),
    ):
        made = chief.call("agent.register", name=f"made-by-{provider}", **given)
        assert (made["agent"]["provider"], made["agent"]["mode"]) == (provider, "run")
        (ada,) = agents(daemon, 1)
        changed = chief.call("agent.set", name=ada.name, **given)
        assert (changed["provider"], changed["mode"]) == (provider, "run")
        assert ("secrets" in made) == ("secrets" in changed) == (provider == "webhook")


def test_an_option_of_the_provider_an_agent_has_changes_nothing_else(
    daemon: RunningDaemon, chief: Party
) -> None:
    ada = agent(daemon, settings={"command": "true"})
    assert (
        chief.call("agent.set", name=ada.name, settings={"command": "false"})["settings"]["command"]
        == "false"
    )


def test_an_option_that_demo_does_not_take_chooses_the_provider_that_does(
    daemon: RunningDaemon, chief: Party
) -> None:
    ada = agent(daemon, provider="demo")
    assert chief.call("agent.set", name=ada.name, settings={"command": "true"})["provider"] == "command"
    (bob,) = agents(daemon, 1)
    changed = chief.call("agent.set", name=bob.name, settings={"url": "http://127.0.0.1:1/"})
    assert (changed["provider"], changed["settings"]) == ("webhook", {"url": "http://127.0.0.1:1/"})
    both = {"settings": {"command": "true", "url": "http://127.0.0.1:1/"}}
    assert chief.refusal("agent.set", name=ada.name, **both) == "bad_provider"


def test_a_person_is_found_by_name_and_by_address(chief: Party) -> None:
    chief.call("user.register", name="pat")
    assert chief.call("user.token.rotate", name="user:Pat")["name"] == "pat"
    assert chief.call("user.delete", name="user:pat") == {"name": "pat", "deleted": True}


# --- the daemon that does not answer -------------------------------------------------


def test_an_unreachable_daemon_is_told_with_the_command_that_starts_it() -> None:
    error = DaemonUnreachable(socket="/home/x/daemon.sock", why="no such file")
    assert error.payload()["start"] == "hiboss daemon start" and error.message.endswith("hiboss daemon start")
    fresh = DaemonUnreachable(socket="/home/x/daemon.sock", why="no such file", start="hiboss up")
    assert fresh.payload()["start"] == "hiboss up" and fresh.message.endswith("hiboss up")

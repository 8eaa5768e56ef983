"""Tags of messages: whom their text mentions, and the scopes and refs that their senders gave."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, agents, boss, stored


def tags(daemon: RunningDaemon, message: str) -> set[tuple[str, str, str]]:
    with daemon.database() as database:
        rows = database.execute("SELECT kind, name, value FROM tag WHERE message = ?", (int(message[1:]),))
        return {tuple(row) for row in rows}


def mentions(daemon: RunningDaemon, message: str) -> set[tuple[str, str]]:
    return {(name, value) for kind, name, value in tags(daemon, message) if kind == "mention"}


def said(who: Party, to: Party | str, text: str, **params: Any) -> str:
    return str(who.send(to, text=text, **params)["message"])


# --- mentions ---------------------------------------------------------------------------------


def test_agents_people_groups_and_roles_that_there_are_become_tags(daemon: RunningDaemon) -> None:
    ada = agent(daemon)
    bob = agent(daemon, role=f"Lead-of-{ada.name}")
    boss(daemon).call("user.register", name=f"mia-{ada.name}")
    ada.call("conversation.create", name=f"club-{ada.name}", participants=[bob.address])
    text = f"@{bob.name.upper()} @mia-{ada.name} @club-{ada.name} @lead-of-{ada.name} @boss @all @nobody-here"
    assert mentions(daemon, said(ada, bob, text)) == {
        (bob.name, "agent"),
        (f"mia-{ada.name}", "user"),
        (f"club-{ada.name}", "group"),
        (f"lead-of-{ada.name}", "role"),
        ("boss", "user"),
        ("all", "role"),
    }


def test_unknown_and_deleted_names_make_no_tag(daemon: RunningDaemon) -> None:
    ada, bob, gone = agents(daemon, 3)
    for one in (gone, agent(daemon, role=f"sage-{ada.name}")):
        boss(daemon).call("agent.delete", name=one.name)
    assert tags(daemon, said(ada, bob, f"@{gone.name} @sage-{ada.name} @no-such-name")) == set()


def test_a_mention_of_oneself_is_a_tag_as_any_other(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert mentions(ada.daemon, said(ada, bob, f"I, @{ada.name}")) == {(ada.name, "agent")}


@pytest.mark.parametrize("text", ["`@{0}`", "```\n@{0}\n```", "mail@{0}.com", "@{0}/x", "@{0}_"])
def test_names_in_code_and_in_addresses_make_no_tag(two: tuple[Party, Party], text: str) -> None:
    ada, bob = two
    assert tags(ada.daemon, said(ada, bob, text.format(bob.name))) == set()


def test_json_mentions_nobody(two: tuple[Party, Party]) -> None:
    ada, bob = two
    assert tags(ada.daemon, said(ada, bob, f'{{"to": "@{bob.name}"}}', type="json")) == set()


def test_a_mention_alone_sends_nothing_to_who_is_mentioned(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    said(ada, bob, f"ask @{eve.name}")
    assert eve.list() == []


def test_an_edit_changes_the_mentions_and_keeps_scopes_and_refs(daemon: RunningDaemon) -> None:
    ada, bob, eve = agents(daemon, 3)
    about = {"scopes": [{"type": "module", "value": "auth"}], "refs": [{"type": "issue", "value": "42"}]}
    message = said(ada, bob, f"@{bob.name}", **about)
    ada.call("message.edit", id=message, text=f"@{eve.name} and @all")
    assert tags(daemon, message) == {
        ("mention", eve.name, "agent"),
        ("mention", "all", "role"),
        ("scope", "module", "auth"),
        ("ref", "issue", "42"),
    }
    ada.call("message.edit", id=message, text="nobody")
    assert mentions(daemon, message) == set()


# --- scopes and refs -----------------------------------------------------------------------------


def many(number: int, kind: str = "module") -> list[dict[str, str]]:
    return [{"type": kind, "value": f"{i}"} for i in range(number)]


def test_a_ref_of_the_type_mention_is_refused(two: tuple[Party, Party]) -> None:
    ada, bob = two
    before = stored(ada.daemon)
    for kind in ("mention", "Mention"):
        refs = [{"type": kind, "value": bob.name}]
        assert ada.refusal("envelope.send", to=bob.address, text="x", refs=refs) == "invalid_params"
    assert stored(ada.daemon) == before


def test_the_same_scope_twice_is_one_and_text_is_kept_as_written(two: tuple[Party, Party]) -> None:
    ada, bob = two
    twice = [{"type": "module", "value": "a b:c"}] * 2
    assert tags(ada.daemon, said(ada, bob, "x", scopes=twice)) == {("scope", "module", "a b:c")}


def test_what_differs_only_in_its_tags_is_other_content_for_a_key(two: tuple[Party, Party]) -> None:
    ada, bob = two
    ada.send(bob, text="x", key="k", scopes=many(1))
    assert ada.refusal("envelope.send", to=[bob.address], text="x", key="k", scopes=many(2)) == "key_reused"
    assert ada.send(bob, text="x", key="k", scopes=many(1))["duplicate"]

"""`hiboss group` and `hiboss conversation`: every command, as a person runs it."""

from __future__ import annotations

from tests.support.cli import Office
from tests.support.terminal import on_terminal

PLAIN = {"NO_COLOR": "1"}


def test_a_group_lives_from_its_creation_to_its_deletion(office: Office) -> None:
    ada, bob, eve = (office.agent() for _ in range(3))
    made = office(
        *("group", "create", "team", "--member", bob, "--member", "user:boss", "--description", "us"),
        *("--meta", "wiki=/team", "--meta", "size=3", "--history", "2", "--as", ada),
    )
    assert made.values("address") == ["group:team"] and made.values("role") == ["owner"]
    assert made.values("metadata") == ['{"wiki": "/team", "size": 3}'] and made.values("changed") == ["true"]
    assert made.values("participant") == [
        f"agent:{ada}, owner, responds mentioned",
        "user:boss, member",
        f"agent:{bob}, member, responds mentioned",
    ]
    office("send", "group:team", "hello", "--as", ada)
    added = office("group", "add", "team", eve, "--respond", "all", "--as", ada)
    assert added.values("changed") == ["true"] and f"agent:{eve}, member, responds all" in added.stdout
    assert office("group", "add", "team", "--member", eve, "--as", ada).values("changed") == ["false"]
    role = office("group", "role", "team", eve, "admin", "--respond", "never", "--as", ada)
    assert f"agent:{eve}, admin, responds never" in role.stdout
    assert office("group", "remove", "team", bob, "--as", eve).values("changed") == ["true"]
    assert office("group", "transfer", "team", eve, "--as", ada).values("role") == ["admin"]
    assert office("group", "leave", "team", "--as", ada).values("group") == ["group:team"]
    changed = office("group", "set", "group:team", "--open", "--description", "all of us", "--as", eve)
    assert changed.values("open") == ["true"] and changed.values("description") == ["all of us"]
    assert "role: member" in office("group", "join", "team", "--as", bob).stdout
    assert office("group", "archive", "team", "--as", eve).values("archived-at")
    refused = office("send", "team", "x", "--as", bob, "--json")
    assert refused.rc == 1 and refused.error["code"] == "archived"
    assert not office("group", "archive", "team", "--undo", "--as", eve).values("archived-at")
    assert "--yes" in office("group", "delete", "team", "--as", eve).stderr
    deleted = office("group", "delete", "team", "--reason", "over", "--yes", "--as", eve)
    assert (deleted.record["deleted"], deleted.record["failed-envelopes"]) == ("true", "0")
    [_, old] = office("group", "list", "--past", "--as", eve).blocks
    assert old["delete-reason"] == "over"


def test_groups_are_listed_mine_the_open_ones_and_all(office: Office) -> None:
    ada, bob = office.agent(), office.agent()
    office("group", "create", "topic", "--open", "--as", ada)
    office("group", "create", "closed", "--as", ada)
    assert office("group", "list", "--as", bob).values("name") == ["all"]
    assert office("group", "list", "--as", ada).values("name") == ["all", "closed", "topic"]
    assert "closed" not in office("group", "list", "--open", "--as", bob).values("name")
    every = office("group", "list", "--all", "--count", "--as", "boss")
    assert {"closed", "topic"} <= set(every.values("name")) and int(every.values("total")[0]) >= 3
    assert office("group", "list", "--open", "--all", "--as", "boss").rc == 2
    [cursor] = office("group", "list", "-n", "1", "--as", ada).values("next-cursor")
    assert office("group", "list", "--after", cursor, "--as", ada).values("name") == ["topic"]
    assert office("group", "list", "--archived", "--as", ada).stdout == "no-groups: true\n"
    screen = on_terminal(office, "group", "list", "--as", ada, env=PLAIN).stdout
    assert "group:topic" in screen and "owner" in screen


def test_conversations_are_listed_shown_read_and_changed(office: Office) -> None:
    ada, bob = office.agent(), office.agent()
    begun = office("conversation", "create", bob, "--meta", "ticket=7", "--title", "a talk", "--as", ada)
    [number] = begun.values("id")
    for text in ("one", "two", "three"):
        office("send", bob, text, "--as", ada)
    [listed] = office("conversation", "list", "--as", bob).blocks
    assert (listed["id"], listed["unread"], listed["others"]) == (number, "3", f"agent:{ada}")
    shown = office("conversation", "show", number, "--as", bob)
    assert shown.values("name") == ["a talk"] and len(shown.values("participant")) == 2
    said = office("conversation", "messages", number, "--after-seq", "1", "-n", "1", "--as", bob)
    assert "> two" in said.stdout and said.values("more") == ["true"] and said.values("last-seq") == ["3"]
    read = office("conversation", "read", number, "--up-to-seq", "2", "--as", bob)
    assert read.record == {"changed": "2", "last-read-seq": "2", "unread": "1"}
    changed = office("conversation", "set", number, "--description", "d", "--as", bob)
    assert changed.values("description") == ["d"]
    screen = on_terminal(office, "conversation", "list", "--as", bob, env=PLAIN).stdout
    assert number in screen and "a talk" in screen
    assert office("conversation", "archive", number, "--as", bob, "--json").error["code"] == "boss_only"
    assert office("conversation", "archive", number, "--as", "boss").values("archived-at")
    assert office("conversation", "archive", number, "--undo", "--as", "boss").rc == 0
    gone = office("conversation", "delete", number, "--yes", "--reason", "r", "--as", "boss")
    assert gone.record["deleted"] == "true"
    assert "> three" in office("conversation", "messages", number, "--as", ada).stdout
    assert office("conversation", "list", "--as", bob).stdout == "no-conversations: true\n"


def test_every_command_prints_json(office: Office) -> None:
    ada, bob = office.agent(), office.agent()
    words: tuple[tuple[str, ...], ...] = (
        ("group", "create", "jason", "--member", bob),
        ("group", "show", "jason"),
        ("group", "set", "jason", "--closed"),
        ("group", "add", "jason", bob),
        ("group", "role", "jason", bob, "admin"),
        ("group", "archive", "jason"),
        ("group", "list"),
        ("conversation", "create", bob),
        ("conversation", "list"),
        ("conversation", "show", "jason"),
        ("conversation", "messages", "jason"),
        ("conversation", "read", "jason"),
        ("group", "remove", "jason", bob),
        ("group", "delete", "jason", "--yes"),
    )
    for one in words:
        assert isinstance(office(*one, "--as", ada, "--json").json, dict), one

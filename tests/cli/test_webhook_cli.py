"""`hiboss webhook`: every command, as a person runs it."""

from __future__ import annotations

from tests.support.cli import Office

URL = "http://127.0.0.1:9/facts"


def test_a_webhook_that_receives_lives_from_its_creation_to_its_deletion(office: Office) -> None:
    ada, bob = office.agent(), office.agent()
    made = office("webhook", "create", "ci", "--to", ada, "--template", "{a}", "--subject", "s")
    assert (made.record["path"], made.record["address"]) == ("/hooks/ci", "channel:webhook:ci")
    assert (made.record["direction"], made.record["to"]) == ("in", f"agent:{ada}")
    assert made.record["secret"].startswith("whsec_") and "shown only now" in made.stderr
    assert "url" not in made.record
    shown = office("webhook", "show", "ci")
    assert (shown.record["template"], shown.record["subject"]) == ("{a}", "s")
    assert "whsec_" not in shown.stdout
    changed = office("webhook", "set", "ci", "--to", bob, "--template", "", "--subject", "")
    assert changed.record["to"] == f"agent:{bob}" and "template" not in changed.record
    assert office("webhook", "rotate", "ci").record["secret"] != made.record["secret"]
    taken = office("webhook", "create", "ci", "--to", ada, "--json")
    assert (taken.rc, taken.error["code"]) == (1, "webhook_taken")
    assert "--yes" in office("webhook", "delete", "ci").stderr
    gone = office("webhook", "delete", "ci", "--yes")
    assert (gone.record["deleted"], gone.record["dropped-updates"]) == ("true", "0")
    assert office("webhook", "show", "ci", "--json").error["code"] == "unknown_webhook"


def test_a_webhook_that_posts_is_subscribed_changed_and_unsubscribed(office: Office) -> None:
    ada = office.agent()
    made = office("webhook", "subscribe", "audit", "--url", URL, "--topic", "run.ended", "--address", ada)
    assert (made.record["direction"], made.record["url"]) == ("out", URL)
    assert (made.record["topics"], made.record["addresses"]) == ("run.ended", f"agent:{ada}")
    assert made.record["secret"].startswith("whsec_")
    more = office("webhook", "set", "audit", "--topic", "ask.created", "--topic", "ask.settled")
    assert (more.record["topics"], more.record["addresses"]) == ("ask.created, ask.settled", f"agent:{ada}")
    every = office("webhook", "set", "audit", "--all")
    assert "addresses" not in every.record and "run.started" in every.record["topics"]
    assert "webhook unsubscribe" in office("webhook", "delete", "audit", "--yes", "--json").error["message"]
    assert office("webhook", "unsubscribe", "audit", "--yes").record["deleted"] == "true"


def test_webhooks_are_listed_a_block_each_and_as_json(office: Office) -> None:
    assert office("webhook", "list").stdout == "no-webhooks: true\n"
    office("webhook", "create", "a", "--to", office.agent())
    office("webhook", "subscribe", "b", "--url", URL, "--topic", "breaker.pulled")
    listed = office("webhook", "list")
    assert (listed.values("name"), listed.values("direction")) == (["a", "b"], ["in", "out"])
    assert [one["name"] for one in office("webhook", "list", "--json").json["webhooks"]] == ["a", "b"]
    assert "whsec_" not in listed.stdout
    office("webhook", "delete", "a", "--yes")
    office("webhook", "unsubscribe", "b", "--yes")

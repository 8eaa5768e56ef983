"""Files of messages for callers without paths: who may open one, by which name, and what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hiboss.api.auth import NOBODY
from hiboss.api.downloads import OpenedFile, open_attachment
from hiboss.core import errors
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.uploaded_files import context_of, upload

CONTENT = b"1. read\n2. write\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


async def opened(daemon: InProcessDaemon, message: str, which: int | str = 1, who: str = "nex") -> OpenedFile:
    context = context_of(daemon)
    caller = context.auth.authenticate(daemon.token(who), "message.get", "web")
    return await open_attachment(context, caller, message, which)


async def content(daemon: InProcessDaemon, message: str, which: int | str = 1, who: str = "nex") -> bytes:
    with (await opened(daemon, message, which, who)).file as file:
        return file.read()


async def refusal(daemon: InProcessDaemon, message: str, which: int | str = 1, who: str = "nex") -> str:
    with pytest.raises(errors.HibossError) as caught:
        await opened(daemon, message, which, who)
    return caught.value.code


async def sent(daemon: InProcessDaemon, to: str = "agent:nex", who: str = "boss", **params: object) -> str:
    """Send a file; return the message."""
    made = await upload(daemon, CONTENT, name="plan.pdf", who=who)
    done = await daemon.ask("envelope.send", who, to=to, text="see", uploads=[made["id"]], **params)
    return str(done["message"])


def in_media(daemon: InProcessDaemon) -> Path:
    [found] = Path(daemon.home.media).rglob(f"{SHA256}*")
    return found


@frozen()
async def test_a_file_is_opened_by_its_place_or_its_sha256_of_a_message_or_an_envelope(
    daemon: InProcessDaemon,
) -> None:
    message = await sent(daemon)
    [got] = (await daemon.ask("envelope.list", "nex"))["envelopes"]
    [shown] = (await daemon.ask("message.get", "nex", message_id=message))["message"]["attachments"]
    for named in (message, message[1:], got["id"]):
        for which in (1, "1", shown["sha256"], SHA256.upper()):
            found = await opened(daemon, named, which)
            assert found[1:] == ("plan.pdf", "application/pdf", len(CONTENT), SHA256)
            with found.file as file:
                assert file.read() == CONTENT


@frozen()
async def test_of_several_each_is_found_by_its_own_place(daemon: InProcessDaemon) -> None:
    made = [await upload(daemon, f"{n}".encode(), name=f"{n}.txt", who="boss") for n in range(3)]
    done = await daemon.ask("envelope.send", to="agent:nex", uploads=[one["id"] for one in made])
    for place in (1, 2, 3):
        assert await content(daemon, done["message"], place) == f"{place - 1}".encode()
        assert await content(daemon, done["message"], made[place - 1]["sha256"]) == f"{place - 1}".encode()
    for wrong in (0, 4, 999_999_999, "0" * 64):
        assert await refusal(daemon, done["message"], wrong) == "not_found"


@frozen()
async def test_what_names_no_file_is_refused(daemon: InProcessDaemon) -> None:
    message = await sent(daemon)
    for wrong in ("", "x", "-1", "1.5", "../plan.pdf", "²", "9" * 20, SHA256[:-1]):
        assert await refusal(daemon, message, wrong) == "invalid_params"
    assert {await refusal(daemon, named) for named in ("x", "t1", "m0", "../m1")} == {"bad_id"}
    plain = (await daemon.ask("envelope.send", to="agent:nex", text="no file"))["message"]
    assert await refusal(daemon, plain) == "not_found"


@frozen()
async def test_only_who_may_see_the_message_gets_its_file(daemon: InProcessDaemon) -> None:
    await daemon.register("ada", "eve")
    message = await sent(daemon, "agent:ada", who="nex")
    assert {await content(daemon, message, 1, who) for who in ("nex", "ada", "boss")} == {CONTENT}
    assert await refusal(daemon, message, 1, "eve") == await refusal(daemon, "m999", 1, "eve") == "not_found"
    context = context_of(daemon)
    with pytest.raises(errors.NoToken):
        await open_attachment(context, NOBODY, message, 1)
    await daemon.ask("permission.policy.set", policy={"message.get": "privileged"})
    assert await refusal(daemon, message, 1, "ada") == "forbidden"


@frozen()
async def test_before_it_arrives_only_its_sender_gets_it(daemon: InProcessDaemon) -> None:
    await daemon.register("ada")
    message = await sent(daemon, "agent:ada", who="nex", deliver_at="+1h")
    assert await content(daemon, message) == CONTENT
    assert await refusal(daemon, message, 1, "ada") == "not_found"
    await daemon.move(hours=1)
    assert await content(daemon, message, 1, "ada") == CONTENT


@frozen()
async def test_in_a_group_a_member_gets_what_was_said_while_it_was_there(daemon: InProcessDaemon) -> None:
    await daemon.register("ada", "eve")
    made = await daemon.ask("conversation.create", name="core", participants=["agent:ada", "agent:nex"])
    number = made["conversation"]["id"]
    before = await sent(daemon, "group:core")
    await daemon.ask("participant.add", conversation=number, address="agent:eve")
    await daemon.ask("participant.remove", conversation=number, address="agent:ada")
    after = await sent(daemon, "group:core")
    assert [await content(daemon, one, 1, "nex") for one in (before, after)] == [CONTENT] * 2
    assert await content(daemon, before, 1, "ada") == await content(daemon, after, 1, "eve") == CONTENT
    assert await refusal(daemon, after, 1, "ada") == await refusal(daemon, before, 1, "eve") == "not_found"


@frozen()
async def test_the_file_of_a_deleted_message_is_not_served_until_it_is_restored(
    daemon: InProcessDaemon,
) -> None:
    message = await sent(daemon)
    await daemon.ask("message.delete", id=message)
    assert await refusal(daemon, message) == await refusal(daemon, message, SHA256, "boss") == "not_found"
    await daemon.ask("message.restore", id=message)
    assert await content(daemon, message) == CONTENT
    await daemon.ask("message.edit", id=message, text="other words")
    assert await content(daemon, message) == CONTENT


@frozen()
async def test_a_file_that_is_missing_damaged_or_a_link_is_said_to_be_lost(daemon: InProcessDaemon) -> None:
    message = await sent(daemon)
    path = in_media(daemon)
    path.write_bytes(CONTENT + b"more")
    assert await refusal(daemon, message) == "attachment_lost"
    path.unlink()
    assert await refusal(daemon, message) == "attachment_lost"
    elsewhere = Path(daemon.home.path).parent / "elsewhere"
    elsewhere.write_bytes(CONTENT)
    for target in (str(elsewhere), daemon.home.database, daemon.home.profile("boss")):
        os.symlink(target, path)
        with pytest.raises(errors.AttachmentLost, match=r"plan\.pdf of m1") as caught:
            await opened(daemon, message)
        assert daemon.home.path not in str(caught.value)
        path.unlink()
    os.link(daemon.home.profile("boss"), path)
    assert await refusal(daemon, message) == "attachment_lost"


@frozen()
async def test_a_row_that_points_out_of_media_opens_nothing(daemon: InProcessDaemon) -> None:
    message = await sent(daemon)
    for wrong in ("../hiboss.db", "../tokens/boss", "/etc/passwd"):
        daemon.change(
            "UPDATE message SET attachments = json_set(attachments, '$[0].file', ?) WHERE id = 1", wrong
        )
        assert await refusal(daemon, message) == "attachment_lost"
    daemon.change("UPDATE message SET attachments = NULL WHERE id = 1")


@frozen()
async def test_a_file_is_there_after_a_restart_and_for_the_next_holder_of_a_name_it_is_not(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada")
    message = await sent(daemon, "agent:ada")
    await daemon.restart(hours=1)
    assert await content(daemon, message, 1, "ada") == CONTENT
    await daemon.ask("agent.delete", name="ada")
    await daemon.register("ada")
    assert await refusal(daemon, message, 1, "ada") == "not_found"


@frozen()
async def test_who_lost_the_token_gets_nothing(daemon: InProcessDaemon) -> None:
    message, context = await sent(daemon), context_of(daemon)
    caller = context.auth.authenticate(daemon.token("nex"), "message.get", "web")
    await daemon.ask("agent.token.revoke", name="nex")
    with pytest.raises(errors.BadToken):
        await open_attachment(context, caller, message, 1)

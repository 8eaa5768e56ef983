"""Live posts: an answer grows in its channel while the run works, and becomes the answer or goes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.live_places import QUICK, LivePlace, Writer
from tests.support.parties import boss
from tests.support.python_agents import Boss, Team, wait_until_idle
from tests.support.scripted_channels import CRASH, envelope_error, lane_error
from tests.support.waits import wait_until

_names = (f"writer-{number}" for number in itertools.count(1))


def set_live(daemon: RunningDaemon, **settings: str) -> None:
    """Change the settings of live posts while the daemon runs."""
    lines = [f"{key} = {value}\n" for key, value in settings.items()]
    Path(daemon.home.config).write_text("".join(["[delivery]\n", *lines]))
    daemon.call("config.reload", token=daemon.token("boss"))


@pytest.fixture(scope="module", autouse=True)
def quick(daemon: RunningDaemon) -> None:
    set_live(daemon, **QUICK)


@pytest.fixture
def writer(team: Team) -> Callable[..., Writer]:
    return lambda *args, **more: Writer(team, next(_names), *args, **more)


def asked(place: LivePlace, writer: Writer) -> LivePlace:
    """Bind a place to the writer, and let somebody ask something there."""
    place.bound(writer.agent.daemon, writer.agent)  # type: ignore[arg-type]
    place.comes_in("1", text="hello", message="42")
    return place


def grown(place: LivePlace, writer: Writer) -> LivePlace:
    """Do the same, and wait until the first words are shown."""
    asked(place, writer).wait_until_seen("well…")
    wait_until(lambda: place.rows() and place.rows()[0]["platform_id"])
    return place


def test_an_answer_grows_in_one_post_which_becomes_the_answer(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    ends(place, kai, "well…\nand done")
    [post] = place.posts()  # only one: the rest were edits
    [run] = kai.agent.runs()
    assert post["id"] == run["id"] and post["reply_to"] == "42"
    [answer] = [one for one in kai.agent.list(box="outbox") if one["message"] == run["answer"]]
    assert answer["status"] == "done" and answer["attempts"] == 0
    with ada.daemon.database() as database:
        [stored] = database.execute("SELECT * FROM post WHERE envelope = ?", (int(answer["id"][1:]),))
    assert (stored["platform_id"], stored["content"]) == (f"{run['id']}.0", "well…\nand done")
    place.comes_in("2", text="and?", reply_to=stored["platform_id"])  # people can reply to it
    wait_until(lambda: len(kai.agent.turns()) == 2)
    assert "in-reply-to" in kai.agent.turns()[1] or answer["id"] in kai.agent.turns()[1]


def test_every_change_of_a_post_has_a_key_of_its_own(writer: Callable[..., Writer], tmp_path: Path) -> None:
    kai = writer(first='print("well…")', end='print("more", flush=True); wait_for("last"); print("all")')
    place = grown(LivePlace(tmp_path), kai)
    kai.goes_on()
    place.wait_until_seen("well…\nmore")
    (kai.go.parent / "last").touch()
    place.wait_until_seen("well…\nmore\nall")
    keys = [place.posts()[0]["key"], *[one["key"] for one in place.changes("edit")]]
    assert len({*keys}) == len(keys) >= 3
    wait_until(place.is_settled)


def test_an_answer_that_comes_at_once_is_posted_once_and_never_changed(
    team: Team, ada: Boss, tmp_path: Path
) -> None:
    set_live(ada.daemon, live_seconds="5")
    kai = team.hire('print("at once")')
    place = LivePlace(tmp_path).bound(ada.daemon, kai)
    place.comes_in("1", text="hello")
    place.wait_for("at once")
    set_live(ada.daemon, **QUICK)
    assert place.posts()[0]["id"].startswith("e") and place.changes() == []


def test_live_posts_can_be_switched_off_and_typing_is_shown_all_the_same(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    set_live(ada.daemon, **QUICK, live_posts='"off"')
    kai = writer()
    place = asked(LivePlace(tmp_path), kai)
    wait_until(lambda: place.signs("typing"))
    kai.goes_on()
    place.wait_for("well…\nand done")
    set_live(ada.daemon, **QUICK)
    assert place.posts()[0]["id"].startswith("e")


def test_if_the_agent_posts_something_itself_the_answer_is_posted_anew_after_it(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    place = LivePlace(tmp_path)
    kai = writer(end=f'send("{place.address}", "look"); print("and done")')
    grown(place, kai)
    ends(place, kai, "look", "well…\nand done")


def test_if_somebody_writes_there_meanwhile_the_answer_is_posted_anew(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    place.comes_in("2", text="are you still there?")
    wait_until(lambda: place.rows()[0]["overtaken"])
    kai.goes_on()
    wait_until(lambda: len(kai.agent.runs()) == 2 and kai.status() == "completed")
    place.wait_until_seen("well…\nand done", "well…\nand done")
    assert next(one["id"][0] for one in place.posts() if f"{one['id']}.0" not in deleted(place)) == "e"


def ends(place: LivePlace, writer: Writer, *texts: str) -> None:
    """Let the writer go on; in the end people see these texts, and nothing grows any more."""
    writer.goes_on()
    place.wait_until_seen(*texts)
    wait_until(place.is_settled)


def deleted(place: LivePlace) -> set[str]:
    return {one["id"] for one in place.changes("delete")}


@pytest.mark.parametrize(
    ("end", "seen"),
    [
        ("""print(json.dumps({"hiboss": "final", "text": "NO_REPLY"}))""", []),  # silence
        ("""print(json.dumps({"hiboss": "final", "text": ""}))""", []),
        # A failure: its envelope is tried again later.
        ("sys.exit(1)", ["⚠️ {} could not answer yet; it will be tried again."]),
    ],
)
def test_without_an_answer_a_live_post_goes(
    writer: Callable[..., Writer], tmp_path: Path, end: str, seen: list[str]
) -> None:
    kai = writer(end, first="""print(json.dumps({"hiboss": "delta", "text": "well…"}))""")
    place = grown(LivePlace(tmp_path), kai)
    ends(place, kai, *[one.format(kai.agent.name) for one in seen])
    assert place.changes("delete") != []


def test_the_word_for_silence_is_never_shown(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer('print("LY")', first='print("NO_REP", end="")')
    place = asked(LivePlace(tmp_path), kai)
    wait_until(lambda: place.signs("typing"))
    zoe = writer()
    ends(grown(LivePlace(tmp_path), zoe), zoe, "well…\nand done")  # what began later
    kai.goes_on()
    wait_until(lambda: kai.agent.runs() and kai.status() == "completed")
    assert place.posts() == []


def test_a_live_post_goes_with_a_cancelled_run(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    ada.call("run.cancel", id=kai.agent.runs()[0]["id"])
    place.wait_until_seen(f"{kai.agent.name} was stopped before it could answer this.")
    wait_until(place.is_settled)
    assert kai.status() == "cancelled"


def test_a_live_post_goes_with_a_deleted_agent(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    ada.call("agent.delete", name=kai.agent.name)
    place.wait_until_seen()
    wait_until(place.is_settled)


def test_the_turn_of_an_agent_that_is_paused_meanwhile_ends_as_usual(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    ada.call("agent.pause", name=kai.agent.name)
    ends(place, kai, "well…\nand done")
    assert len(place.posts()) == 1


def test_a_live_post_is_deleted_before_its_account_is_unbound(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    place.unbind()
    assert place.seen() == [] and place.is_settled()
    kai.goes_on()
    wait_until(lambda: kai.status() == "completed")
    assert len(place.posts()) == 1 and len(ada.told_of(kai.agent)) == 1  # the answer could not be sent


def test_a_live_post_goes_when_its_agent_may_not_post_there_any_more(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai, zoe = writer(end='print("more", flush=True); wait_for("never")'), writer()
    place = LivePlace(tmp_path).bound(zoe.agent.daemon, zoe.agent).bound(kai.agent.daemon, kai.agent)
    boss(kai.agent.daemon).send(kai.agent, text="hello", **{"from": place.address})
    place.wait_until_seen(f"{kai.agent.name}:\nwell…")
    place.unbind(kai.agent)
    ends(place, kai)
    boss(kai.agent.daemon).call("run.cancel", id=kai.agent.runs()[-1]["id"])


def test_a_final_text_that_the_agent_already_posted_leaves_no_live_post(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    place = LivePlace(tmp_path)
    kai = writer(end=f'send("{place.address}", "well…\\nthe same"); print("the same")')
    grown(place, kai)
    ends(place, kai, "well…\nthe same")
    assert "already sent" in kai.agent.runs()[0]["note"]


@pytest.mark.parametrize("error", [envelope_error(), CRASH, lane_error(retry_after=None)])
def test_after_an_error_of_an_edit_the_answer_is_posted_and_the_live_post_goes(
    writer: Callable[..., Writer], tmp_path: Path, error: dict[str, Any]
) -> None:
    kai = writer()
    place = grown(LivePlace(tmp_path), kai)
    place.script_for("edit", error)
    ends(place, kai, "well…\nand done")
    assert [one["id"][0] for one in place.posts()] == ["r", "e"] and len(deleted(place)) == 1
    assert place.lane() == {}  # it has not failed


def refusals_left(place: LivePlace) -> int:
    return (place.root / "edit.jsonl").read_text().count("\n")


def test_in_a_wait_named_for_a_change_nothing_is_tried_and_what_is_shown_stays_until_it_is_the_answer(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer(end='print("more", flush=True); wait_for("more"); print("and done")')
    place = grown(LivePlace(tmp_path), kai)
    place.script_for("edit", lane_error(kind="rate_limited"), {"do": "ok"}, {"do": "ok"})
    kai.goes_on()
    wait_until(lambda: place.lane().get("not_before"))
    assert (place.lane()["state"], place.lane()["failures"]) == ("waiting", 0)
    (kai.go.parent / "more").touch()
    wait_until(lambda: kai.status() == "completed")
    [answer] = kai.agent.list(box="outbox")
    place.steer("pause")  # what was looked at before this had its chance
    assert place.seen() == ["well…"] and refusals_left(place) == 2
    place.steer("resume")
    place.steer("retry")
    place.wait_until_seen("well…\nmore\nand done")
    wait_until(place.is_settled)
    assert len(place.posts()) == 1 and place.changes("delete") == [] and refusals_left(place) == 1
    assert ada.get(answer["id"])["attempts"] == 0 and ada.told_of(kai.agent) == []


@pytest.mark.parametrize("times", [1, 9])
def test_a_last_change_that_has_to_wait_is_tried_again_and_then_the_answer_is_posted_anew(
    writer: Callable[..., Writer], tmp_path: Path, times: int
) -> None:
    kai = writer(end="""print(json.dumps({"hiboss": "final", "text": "all"}))""")
    place = grown(LivePlace(tmp_path), kai)
    place.script_for("edit", *[lane_error(kind="rate_limited", retry_after=0.01)] * times)
    ends(place, kai, "all")
    assert [one["id"][0] for one in place.posts()] == (["r"] if times == 1 else ["r", "e"])
    assert times == 1 or refusals_left(place) == 9 - 3


def test_an_answer_gets_through_where_a_chat_takes_few_posts_and_edits(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    place = LivePlace(tmp_path, chat_seconds=0.15)
    refused = place.root / "refused.jsonl"
    until = f"iter(lambda: os.path.exists({str(refused)!r}), True)"
    kai = writer(end=f'[(print("more", flush=True), time.sleep(0.01)) for _ in {until}]; print("and done")')
    grown(place, kai)
    kai.goes_on()  # it speaks until the chat has refused a change
    wait_until(lambda: place.seen() and place.seen()[0].endswith("more\nand done"))
    wait_until(place.is_settled)
    assert len(place.posts()) == 1 and place.changes("delete") == []  # it never vanished


def test_of_an_answer_in_chunks_the_live_post_becomes_the_first(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai = writer(end='print("0123456789abcdef")')
    place = grown(LivePlace(tmp_path, chunk=10), kai)
    ends(place, kai, "well…\n0123", "456789abcd", "ef")
    assert [one["id"][0] for one in place.posts()] == ["r", "e", "e"]


def test_an_answer_that_can_never_be_posted_leaves_no_live_post(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai = writer(end='print("0123456789")')
    place = grown(LivePlace(tmp_path, limit=10), kai)
    ends(place, kai)
    wait_until(lambda: [one["status"] for one in kai.agent.list(box="outbox")] == ["failed"])
    assert place.seen() == [] and len(place.posts()) == 1


def test_what_cannot_be_edited_gets_the_answer_and_another_place_grows(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai = writer()
    plain = LivePlace(tmp_path, "files")
    live = LivePlace(tmp_path)
    for place in (plain, live):
        place.bound(ada.daemon, kai.agent)
    ada.send(kai.agent, live.address, plain.address, text="both", **{"from": "user:boss"})
    live.wait_until_seen("both", "well…")
    assert plain.seen() == ["both"]
    kai.goes_on()
    live.wait_until_seen("both", "well…\nand done")
    plain.wait_until_seen("both", "well…\nand done")
    assert plain.changes() == [] and len(live.posts()) == 2


def test_where_only_drafts_are_possible_the_answer_grows_as_a_draft(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai = writer()
    place = asked(LivePlace(tmp_path, "draft"), kai)
    wait_until(lambda: place.signs("draft"))
    assert place.signs("draft")[0]["text"] == "well…" and place.posts() == []
    ends(place, kai, "well…\nand done")


def test_signs_that_fail_are_dropped_and_change_nothing(
    writer: Callable[..., Writer], tmp_path: Path
) -> None:
    kai = writer()
    place = LivePlace(tmp_path)
    place.script_for("typing", CRASH)
    asked(place, kai)
    place.wait_until_seen("well…")
    wait_until(lambda: (place.root / "typing.jsonl").read_text() == "")
    ends(place, kai, "well…\nand done")
    assert place.lane() == {} and place.signs("typing") == []


def test_nothing_is_shown_in_a_lane_that_is_paused(writer: Callable[..., Writer], tmp_path: Path) -> None:
    kai, zoe = writer(), writer()
    place = LivePlace(tmp_path).bound(kai.agent.daemon, kai.agent)
    place.steer("pause")
    place.comes_in("1", text="hello")
    wait_until(lambda: kai.agent.runs() and kai.status() == "running")
    ends(grown(LivePlace(tmp_path), zoe), zoe, "well…\nand done")  # what began later
    assert place.posts() == [] and place.signs("typing") == []
    kai.goes_on()
    wait_until(lambda: kai.status() == "completed")
    assert place.posts() == []
    place.steer("resume")
    place.wait_until_seen("well…\nand done")


def test_two_runs_in_one_place_end_with_both_answers_in_the_order_in_which_they_came(
    writer: Callable[..., Writer], ada: Boss, tmp_path: Path
) -> None:
    kai, zoe = writer(end='print("kai")'), writer(end='print("zoe")', first='print("hm…")')
    place = LivePlace(tmp_path)
    for one in (kai, zoe):
        place.bound(ada.daemon, one.agent)
    ada.send(kai.agent, text="hello", **{"from": place.address})
    of_kai, of_zoe = f"{kai.agent.name}:\n", f"{zoe.agent.name}:\n"  # where several write, each is named
    place.wait_until_seen(f"{of_kai}well…")
    ada.send(zoe.agent, text="hello", **{"from": place.address})
    place.wait_until_seen(f"{of_kai}well…", f"{of_zoe}hm…")
    kai.goes_on()
    place.wait_until_seen(f"{of_zoe}hm…", f"{of_kai}well…\nkai")  # zoe's came after: kai's is posted anew
    ends(place, zoe, f"{of_kai}well…\nkai", f"{of_zoe}hm…\nzoe")


@pytest.fixture
def phone(ada: Boss, tmp_path: Path) -> Iterator[LivePlace]:
    """A chat of the boss, bound when the test does it."""
    yield LivePlace(tmp_path)
    ada.call("boss.set", reach="")


def test_what_the_boss_asks_in_his_chat_grows_there(
    writer: Callable[..., Writer], ada: Boss, phone: LivePlace
) -> None:
    kai = writer()
    phone.bound(ada.daemon, kai.agent)
    ada.call("boss.set", reach=phone.address)
    phone.comes_in("1", text="hello", message="7")
    phone.wait_until_seen(f"{kai.agent.name}:\nwell…")
    ends(phone, kai, f"{kai.agent.name}:\nwell…\nand done")
    assert [one["text"] for one in ada.heard(kai.agent)] == ["well…\nand done"]
    assert len(phone.posts()) == 1 and phone.posts()[0]["reply_to"] == "7"


def test_what_the_boss_asks_elsewhere_grows_in_his_chat_with_the_name_of_an_agent_that_is_not_alone_there(
    writer: Callable[..., Writer], ada: Boss, phone: LivePlace
) -> None:
    kai = writer()
    phone.bound(ada.daemon)  # to somebody else
    ada.call("boss.set", reach=phone.address)
    ada.say(kai.agent)
    name = f"{kai.agent.name}:\n"
    phone.wait_until_seen(f"{name}well…")
    ends(phone, kai, f"{name}well…\nand done")
    assert len(phone.posts()) == 1


def test_a_folder_shows_the_answer_grow(writer: Callable[..., Writer], ada: Boss, tmp_path: Path) -> None:
    kai = writer()
    folder = tmp_path / "tray"
    bind_folder(ada, kai, folder)
    (folder / "in" / "question.part").write_text("hello")
    (folder / "in" / "question.part").rename(folder / "in" / "question.txt")
    wait_until(lambda: out_files(folder) == {"r": "well…"})
    kai.goes_on()
    wait_until(lambda: out_files(folder) == {"r": "well…\nand done"})
    wait_until_idle(ada.daemon)
    assert out_files(folder) == {"r": "well…\nand done"}


def bind_folder(ada: Boss, writer: Writer, folder: Path) -> None:
    ada.call("agent.bind", name=writer.agent.name, adapter_type="folder", settings={"path": str(folder)})
    wait_until(lambda: (folder / "in").is_dir())


def out_files(folder: Path) -> dict[str, str]:
    """Return the texts in out/, by the first letter of their names."""
    return {one.name[0]: one.read_text() for one in (folder / "out").glob("*.md")}

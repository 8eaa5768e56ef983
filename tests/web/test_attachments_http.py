"""Downloads over HTTP: their form, ranges, who may have them, and one-time links."""

from __future__ import annotations

from email import message_from_bytes
from pathlib import Path

import pytest
from freezegun import freeze_time

from hiboss.core.errors import BadToken
from hiboss.web.tickets import LIVES_MS, MOST, Tickets
from tests.support.http_files import CONTENT, get, sent, ticket
from tests.support.parties import Party, agent, boss, person
from tests.support.web_clients import Headers, RestClient, bearer
from tests.support.web_daemons import WebDaemon, web_daemon, web_fixture

web = web_fixture(clean=True)


# --- download --------------------------------------------------------------------------------


def test_a_download_is_never_shown_in_the_page(nex: RestClient) -> None:
    found = get(nex, sent(nex, b"plain", "a.txt", mime="text/plain"))
    assert (found.status, found.body) == (200, b"plain")
    assert found.headers["content-disposition"] == 'attachment; filename="a.txt"'
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers.get_all("content-security-policy") == [
        "sandbox; default-src 'none'; frame-ancestors 'none'"
    ]
    assert found.headers["cross-origin-resource-policy"] == "same-origin"
    assert "no-store" in found.headers["cache-control"]


@pytest.mark.parametrize(
    "mime",
    [
        *("text/html", "TEXT/HTML", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/xml"),
        *("text/javascript", "application/javascript", "text/css", "application/rss+xml", "text/xsl"),
        *("application/mathml+xml", "text/ecmascript", "multipart/x-mixed-replace", "application/wasm"),
    ],
)
def test_what_a_browser_would_run_or_apply_has_no_type(nex: RestClient, mime: str) -> None:
    found = get(nex, sent(nex, b"<script>1</script>", "a.x", mime=mime))
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("mime", ["image/png", "application/pdf", "video/mp4", "application/zip"])
def test_what_only_shows_something_keeps_its_type(nex: RestClient, mime: str) -> None:
    assert get(nex, sent(nex, b"data", "a.x", mime=mime)).headers["content-type"] == mime


@pytest.fixture(scope="module")
def place(web: WebDaemon) -> str:
    """Where a file is that nex sent to itself."""
    return sent(web.rest(web.token("nex")))


SIZE = len(CONTENT)


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=100-", 100, SIZE),
        ("bytes=-7", SIZE - 7, SIZE),
        (f"bytes=5-{SIZE * 9}", 5, SIZE),
        (f"bytes=-{SIZE * 9}", 0, SIZE),
        ("bytes=0-9,5-14", 0, 15),
        ("Bytes = 1-2", 1, 3),
    ],
)
def test_a_range_of_a_file_is_sent(nex: RestClient, place: str, given: str, start: int, end: int) -> None:
    found = get(nex, place, Range=given)
    assert (found.status, found.body) == (206, CONTENT[start:end])
    assert found.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"
    assert found.headers["content-disposition"].startswith("attachment")
    assert found.headers["content-security-policy"].startswith("sandbox")


def test_several_ranges_are_sent_as_parts(nex: RestClient, place: str) -> None:
    found = get(nex, place, Range="bytes=0-9, 100-109, -5")
    kind = found.headers["content-type"]
    assert found.status == 206 and kind.startswith("multipart/byteranges")
    whole = message_from_bytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + found.body)
    assert [part["content-range"] for part in whole.get_payload()] == [  # type: ignore[union-attr,index]
        f"bytes {one}/{SIZE}" for one in ("0-9", "100-109", f"{SIZE - 5}-{SIZE - 1}")
    ]
    assert int(found.headers["content-length"]) == len(found.body)


@pytest.mark.parametrize("given", [f"bytes={SIZE}-", f"bytes={SIZE + 5}-{SIZE + 9}", "bytes=-0"])
def test_a_range_behind_the_end_is_refused_with_the_size(nex: RestClient, place: str, given: str) -> None:
    found = get(nex, place, Range=given)
    assert (found.status, found.headers["content-range"]) == (416, f"bytes */{SIZE}")
    assert found.code == "no_such_part" and found.json["error"]["data"]["size"] == SIZE


@pytest.mark.parametrize(
    "given",
    [
        *("", "bytes", "bytes=", "bytes=-", "bytes=a-b", "items=0-5", "bytes=9-5", "0-5"),
        "bytes=" + ",".join(f"{2 * one}-{2 * one}" for one in range(5_000)),
        "bytes=" + "1" * 5_000 + "-",
    ],
    ids=lambda one: one[:20],
)
def test_a_range_that_is_none_is_ignored(nex: RestClient, place: str, given: str) -> None:
    found = get(nex, place, Range=given)
    assert (found.status, found.body) == (200, CONTENT)


def test_head_tells_the_same_without_the_file(nex: RestClient, place: str) -> None:
    whole, told = get(nex, place), get(nex, place, "HEAD")
    assert (told.status, told.body, told.headers.items()) == (200, b"", whole.headers.items())
    part = get(nex, place, "HEAD", Range="bytes=0-9")
    assert (part.status, part.body, part.headers["content-length"]) == (206, b"", "10")


def test_a_condition_is_kept(nex: RestClient, place: str) -> None:
    tag = get(nex, place).headers["etag"]
    assert get(nex, place, Range="bytes=0-9", If_Range=tag).status == 206
    assert get(nex, place, Range="bytes=0-9", If_Range='"another"').body == CONTENT
    assert get(nex, place, Range="bytes=0-9", If_Range=f"W/{tag}").body == CONTENT
    assert get(nex, place, If_None_Match=tag).status in (200, 304)


@pytest.mark.parametrize("host", ["[127.0.0.1]", "[::1]", "localhost:99999", "127.0.0.1:", "LOCALHOST."])
def test_an_odd_name_of_this_machine_makes_no_difference(web: WebDaemon, place: str, host: str) -> None:
    """The url of a request that Starlette makes of its Host can be one that cannot be read."""
    nex = web.rest(web.token("nex"))
    assert get(nex, place, Host=host).status == 200
    link = nex.request("POST", f"{place}/ticket", None, {"Host": host})
    assert link.status == 201, link
    assert web.rest().request("GET", link.json["url"], None, {"Host": host}).status == 200
    key = {"Host": host, "Idempotency-Key": "k"}
    assert nex.request("POST", "/api/op/daemon.ping", {}, key).code == "key_not_taken"


# --- who may see it --------------------------------------------------------------------------


def rest(web: WebDaemon, party: Party) -> RestClient:
    return web.rest(party.token)


def test_only_those_who_see_the_message_get_its_file(web: WebDaemon) -> None:
    one, two, other = (agent(web) for _ in range(3))
    path = sent(rest(web, one), to=two.address)
    for party, status in ((one, 200), (two, 200), (boss(web), 200), (other, 404)):
        assert get(rest(web, party), path).status == status
        assert rest(web, party).request("POST", f"{path}/ticket").status == (201 if status == 200 else 404)
    assert get(rest(web, person(web)), path).status == 404
    for client, code in ((web.rest(), "no_token"), (web.rest("hb_wrong"), "bad_token")):
        assert get(client, path).code == client.request("POST", f"{path}/ticket").code == code


def test_the_answer_does_not_tell_whether_there_is_such_a_file(web: WebDaemon) -> None:
    path = sent(web.rest(web.token("boss")), to="user:boss")
    nex = web.rest(web.token("nex"))
    there, not_there = get(nex, path), get(nex, "/api/attachments/e99999999/1")
    number = path.split("/")[3]
    assert there.status == not_there.status == 404
    assert there.body.replace(number.encode(), b"") == not_there.body.replace(b"e99999999", b"")


def test_the_file_of_a_deleted_message_is_gone_and_that_of_one_in_the_trash_is_not(web: WebDaemon) -> None:
    ada, nex = web.rest(web.token("boss")), web.rest(web.token("nex"))
    path = sent(ada, text="a plan")
    number = path.split("/")[3]
    link = ticket(nex, path)
    assert nex.request("POST", f"/api/messages/{number}/trash").status == 200
    assert get(nex, path).status == 200
    assert nex.request("POST", f"/api/messages/{number}/restore").status == 200
    assert get(nex, path).status == 200
    deleted = ada.request("DELETE", f"/api/messages/{number}")
    assert deleted.status == 200, deleted
    assert get(nex, path).status == get(ada, path).status == get(web.rest(), link).status == 404


@pytest.mark.parametrize(
    "tail",
    [
        *(
            "m1/../../../../etc/passwd",
            "m1/..%2f..%2fetc%2fpasswd",
            "..%2f..%2fm1/1",
            "m1/-1",
            "m1/0x0",
            "m1/1e0",
        ),
        *("m1/%D9%A0", "m1/1%00", "m1/1%0a", "m1/%20%201x", "m1/+1", "m1/9999999", "m1/" + "0" * 5_000),
        *(
            "m-1/1",
            "m0/1",
            "m99999999999999999999999/1",
            "x1/1",
            "m1%3f/1",
            "m1%23/1",
            "u1/1",
            "m1%0d%0aX:1/1",
        ),
        *("%00/1", "%ff/1", "m1/1/", "m1//1", "m1/1/ticket/ticket", "m%31%2F0/1", "config.toml/1", "c1/1"),
    ],
    ids=lambda one: one[:30],
)
def test_no_place_leads_to_another_file(nex: RestClient, tail: str) -> None:
    found = get(nex, f"/api/attachments/{tail}")
    assert found.status in (400, 404), found
    assert found.code in ("bad_id", "invalid_params", "not_found", "no_such_path")
    assert nex.request("POST", f"/api/attachments/{tail}/ticket").status in (400, 404)


def test_a_message_without_files_or_with_fewer_has_none_there(nex: RestClient) -> None:
    path = sent(nex)
    assert get(nex, path.removesuffix("1") + "2").code == "not_found"
    assert get(nex, path.removesuffix("1") + "000001").body == CONTENT


# --- one-time links --------------------------------------------------------------------------


def test_a_link_is_good_once_and_without_a_token(web: WebDaemon, nex: RestClient, place: str) -> None:
    link, anyone = ticket(nex, place), web.rest()
    assert get(anyone, link, Cookie="hiboss_session=of-a-browser").body == CONTENT
    again = get(anyone, link)
    assert (again.status, again.code) == (401, "bad_token")
    assert get(nex, link).code == "bad_token"  # also with a token


def test_a_link_is_for_one_file_and_is_used_up_by_another(
    web: WebDaemon, nex: RestClient, place: str
) -> None:
    other, link = sent(nex), ticket(nex, place)
    word = link.partition("?")[2]
    assert get(web.rest(), f"{other}?{word}").code == get(web.rest(), link).code == "bad_token"
    for wrong in ("ticket=", "ticket=a&ticket=b", "ticket=%ff", "ticket=" + "a" * 5_000):
        assert get(web.rest(), f"{place}?{wrong}").status in (400, 401)
    assert get(web.rest(), f"{place}?other=1").code == "invalid_params"


def test_a_link_is_good_for_a_minute_by_the_clock_and_not_too_many_are_kept() -> None:
    with freeze_time("2026-01-01 12:00:00") as time:
        tickets = Tickets()
        early, late = tickets.create("token", "/a"), tickets.create("token", "/a")
        time.tick(LIVES_MS / 1000 - 1)
        assert tickets.take(early, "/a") == "token"
        time.tick(1)
        with pytest.raises(BadToken):
            tickets.take(late, "/a")
        found = [tickets.create("token", "/a") for _ in range(MOST + 1)]
        with pytest.raises(BadToken):
            tickets.take(found[0], "/a")
        assert tickets.take(found[1], "/a") == "token"


def test_links_of_one_caller_push_out_only_its_own() -> None:
    tickets = Tickets()
    quiet = tickets.create("of the quiet one", "/a")
    found = [tickets.create("of the busy one", "/a") for _ in range(2 * MOST)]
    assert tickets.take(quiet, "/a") == "of the quiet one"
    assert tickets.take(found[-1], "/a") == "of the busy one"
    with pytest.raises(BadToken):
        tickets.take(found[0], "/a")


def test_a_link_ends_with_the_token_of_who_made_it(web: WebDaemon) -> None:
    one = agent(web)
    path = sent(rest(web, one))
    link = ticket(rest(web, one), path)
    rotated = web.call("agent.token.rotate", token=web.token("boss"), name=one.name)
    assert get(web.rest(), link).code == "bad_token"
    link = ticket(web.rest(rotated["token"]), path)
    web.call("agent.delete", token=web.token("boss"), name=one.name)
    assert get(web.rest(), link).code == "bad_token"


def test_a_link_ends_with_the_daemon(tmp_path: Path) -> None:
    with web_daemon(tmp_path) as web:
        path = sent(web.rest(web.token("nex")))
        link = ticket(web.rest(web.token("nex")), path)
        web.kill()
        web.start()
        assert get(web.rest(), link).code == "bad_token"
        assert get(web.rest(web.token("nex")), path).body == CONTENT


def test_a_link_is_only_made_by_a_right_request(web: WebDaemon, nex: RestClient, place: str) -> None:
    assert nex.request("POST", f"{place}/ticket", {}).status == 201
    assert nex.request("POST", f"{place}/ticket", {"for": "ever"}).code == "invalid_params"
    assert nex.request("POST", f"{place}/ticket", b"x" * 5_000).status == 413
    assert nex.request("GET", f"{place}/ticket").status == 405
    headers: Headers = {**dict(bearer(nex.token)), "Origin": "http://evil.example"}
    assert web.rest().request("POST", f"{place}/ticket", {}, headers).code == "wrong_origin"

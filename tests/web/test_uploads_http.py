"""Uploads over HTTP, and the messages and schedules that use them."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

import pytest

from tests.support.http_files import CONTENT, get, sent, stored, upload
from tests.support.uploaded_files import files
from tests.support.waits import wait_until
from tests.support.web_clients import RestClient
from tests.support.web_daemons import WebDaemon, web_fixture

LIMIT = 200_000  # limits.attachment_bytes
SHORT = {"web.requests.BODY_SECONDS": 0.5, "web.protocols.REST_SECONDS": 0.5}


web = web_fixture(SHORT, clean=True, attachment_bytes=LIMIT, caller_uploads=500)


def raw(web: WebDaemon, text: bytes) -> socket.socket:
    """Write something to a connection of its own."""
    place = urlsplit(web.url)
    opened = socket.create_connection((place.hostname, place.port), timeout=30)
    opened.sendall(text)
    return opened


def head(web: WebDaemon, *lines: str, path: str = "/api/attachments?name=a.txt") -> bytes:
    given = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {web.token('nex')}", *lines)
    return "\r\n".join((*given, "", "")).encode()


# --- upload ----------------------------------------------------------------------------------


def test_an_upload_tells_what_was_stored_and_is_listed_and_deleted(ada: RestClient) -> None:
    reply = upload(ada, CONTENT, "plan.pdf", content_type="application/pdf; charset=x")
    assert reply.status == 201
    shown = reply.json
    assert shown["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (shown["name"], shown["size"], shown["mime"]) == ("plan.pdf", len(CONTENT), "application/pdf")
    assert shown in get(ada, "/api/attachments").json["uploads"]
    assert ada.request("DELETE", f"/api/attachments/{shown['id']}").json == {"changed": 1}
    assert ada.request("DELETE", f"/api/attachments/{shown['id']}").code == "not_found"


@pytest.mark.parametrize("size", [0, 1, LIMIT])
def test_a_file_may_be_empty_and_as_large_as_the_limit(nex: RestClient, size: int) -> None:
    assert get(nex, sent(nex, b"x" * size)).body == b"x" * size


def test_a_file_over_the_limit_is_refused_with_and_without_a_length(web: WebDaemon, nex: RestClient) -> None:
    before = files(web)
    assert upload(nex, b"x" * (LIMIT + 1)).code == upload(nex, iter([b"x" * LIMIT, b"y"])).code == "too_large"
    assert upload(nex, b"", Content_Length=f"{'9' * 18}").code == "too_large"
    assert files(web) == before


def test_a_file_in_chunks_is_stored_whole(nex: RestClient) -> None:
    pieces: Iterable[bytes] = (bytes([one]) * 777 for one in range(100))
    reply = upload(nex, pieces)
    whole = b"".join(bytes([one]) * 777 for one in range(100))
    assert (reply.status, reply.json["sha256"]) == (201, hashlib.sha256(whole).hexdigest())


@pytest.mark.parametrize(
    "begun",
    [
        ("Content-Length: 1000", b"only a part"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked", b"5\r\nhel"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("ends", ["close", "reset", "slow"])
def test_an_upload_that_is_broken_off_leaves_nothing(
    web: WebDaemon, begun: tuple[str, bytes], ends: str
) -> None:
    before = files(web)
    with raw(web, head(web, begun[0]) + begun[1]) as connection:
        wait_until(lambda: len(files(web)) > len(before))
        if ends == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if ends == "slow":
            answer = b""
            while b"body_too_slow" not in answer and (piece := connection.recv(65_536)):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 408 ") and b"body_too_slow" in answer
    wait_until(lambda: files(web) == before)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: -1",),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: five",),
        ("Content-Length: " + "9" * 40,),
        ("Transfer-Encoding: gzip, chunked",),
    ],
    ids=repr,
)
def test_a_length_that_cannot_be_is_refused(web: WebDaemon, lines: tuple[str, ...]) -> None:
    before = files(web)
    with raw(web, head(web, *lines) + b"hello") as connection:
        assert connection.recv(65_536).split()[1] in (b"400", b"413", b"501")
    wait_until(lambda: files(web) == before)


def test_bytes_behind_the_length_are_no_part_of_the_file(web: WebDaemon, nex: RestClient) -> None:
    with raw(web, head(web, "Content-Length: 5") + b"hello and more\r\n\r\n") as connection:
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 201 ") and b'"size":5' in answer
    assert b"HTTP/1.1 400 " in answer  # the rest is no request


NAMES = {
    "a.txt": "a.txt",
    "../../etc/passwd": "passwd",
    "/etc/passwd": "passwd",
    "..\\..\\boot.ini": "boot.ini",
    "C:\\temp\\a.txt": "a.txt",
    "dir/": "dir",
    "..": "file",
    "/": "file",
    "a\r\nSet-Cookie: x=1.txt": "a__Set-Cookie: x=1.txt",
    "a\x00b.txt": "ab.txt",
    'a";filename="b.html': 'a";filename="b.html',
    "a\u202etxt.exe": "a_txt.exe",
    "Plan für Łódź 計画 🚀.md": "Plan für Łódź 計画 🚀.md",
    " ": None,
    "": None,
    "\n": None,
    "x" * 1_000: "x" * 200,
    "x" * 900 + ".txt": "x" * 196 + ".txt",
    "x" * 1_001: None,
    "x" * 10_000: None,
    "é" * 500 + ".txt": "é" * 98 + ".txt",
}


@pytest.mark.parametrize("given", NAMES, ids=lambda one: repr(one)[:40])
def test_a_name_is_made_safe_and_comes_back_as_the_name_of_the_download(nex: RestClient, given: str) -> None:
    wanted = NAMES[given]
    reply = upload(nex, name=given)
    if wanted is None:
        assert reply.code in ("invalid_params", "too_large") and reply.status in (400, 413)
        return
    assert reply.json["name"] == wanted
    message = nex.request("POST", "/api/messages", {"to": "agent:nex", "uploads": [reply.json["id"]]})
    found = get(nex, f"/api/attachments/{message.json['ids'][0]}/1")
    assert found.status == 200 and found.headers.get_all("set-cookie") is None
    told = found.headers["content-disposition"]
    assert told in (f'attachment; filename="{wanted}"', f"attachment; filename*=utf-8''{quote(wanted)}")
    assert found.headers.get_filename() is not None and "\n" not in told


@pytest.mark.parametrize("query", ["", "?", "?name=a&size=5", "?name=a&name=b", "?Name=a", "?name=a&name=a"])
def test_an_upload_has_one_name_and_nothing_else(nex: RestClient, query: str) -> None:
    assert nex.request("POST", f"/api/attachments{query}", b"x").code == "invalid_params"


def test_no_token_goes_in_the_url_of_a_file(web: WebDaemon, ada: RestClient) -> None:
    path, token = sent(ada), web.token("boss")
    anyone = web.rest()
    for method, where in (
        ("POST", f"/api/attachments?name=a&token={token}"),
        ("GET", f"{path}?token={token}"),
        ("POST", f"{path}/ticket?token={token}"),
        ("GET", f"/api/attachments?token={token}"),
    ):
        for client in (anyone, ada):
            reply = client.request(method, where)
            assert (reply.status, reply.code) == (400, "token_in_url"), (method, where, reply)
            assert token.encode() not in reply.body


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("IMAGE/WebP", "image/webp"),
        ("", "text/html"),
        ("application/octet-stream", "text/html"),
        ("application/x-www-form-urlencoded", "text/html"),  # what curl says of any file
        ("no type", "text/html"),
        ("a/b/c", "text/html"),
        ("TEXT/Plain; charset=utf-8", "text/plain"),
        ("x/" + "y" * 500, "text/html"),
    ],
)
def test_a_type_is_taken_as_given_or_guessed(nex: RestClient, given: str, kept: str) -> None:
    headers = {"content_type": given} if given else {}
    assert upload(nex, name="page.html", **headers).json["mime"] == kept


def test_a_name_without_an_ending_says_no_type(nex: RestClient) -> None:
    assert upload(nex, name="a").json["mime"] == "application/octet-stream"


def test_a_form_with_a_file_in_it_is_refused_and_not_stored_with_its_frame(
    web: WebDaemon, nex: RestClient
) -> None:
    before = files(web)
    reply = upload(nex, b"--x\r\n\r\nfile\r\n--x--", content_type="Multipart/Form-Data; boundary=x")
    assert (reply.status, reply.code) == (415, "wrong_content_type")
    assert "--data-binary" in reply.json["error"]["message"] and files(web) == before


def test_a_file_takes_no_idempotency_key(web: WebDaemon, nex: RestClient) -> None:
    before, place = files(web), sent(nex)
    assert upload(nex, Idempotency_Key="k").code == "key_not_taken"
    assert nex.request("POST", f"{place}/ticket", None, {"Idempotency-Key": "k"}).code == "key_not_taken"
    assert len(files(web)) <= len(before) + 1


def test_without_a_right_token_nothing_is_taken(web: WebDaemon) -> None:
    before = files(web)
    assert upload(web.rest(), b"x").code == "no_token"
    assert upload(web.rest("hb_wrong"), b"x").code == "bad_token" and files(web) == before


# --- using them ------------------------------------------------------------------------------


def test_an_upload_is_used_once_and_only_by_its_holder(
    web: WebDaemon, ada: RestClient, nex: RestClient
) -> None:
    before, handle = files(web), stored(nex)
    message = {"to": "agent:nex", "uploads": [handle]}
    assert ada.request("POST", "/api/messages", message).code == "not_found"
    named_twice = nex.request("POST", "/api/messages", {**message, "uploads": [handle, handle]})
    assert named_twice.status == 201
    assert get(nex, f"/api/attachments/{named_twice.json['message']}/2").code == "not_found"
    assert nex.request("POST", "/api/messages", message).code == "not_found"
    assert ada.request("DELETE", f"/api/attachments/{handle}").code == "not_found"
    assert files(web) == before


def test_a_repeated_send_with_its_key_is_a_duplicate_although_its_upload_is_used(nex: RestClient) -> None:
    message = {"to": "agent:nex", "text": "with a file", "uploads": [stored(nex)]}
    key = {"Idempotency-Key": "with-a-file"}
    first = nex.request("POST", "/api/messages", message, key)
    second = nex.request("POST", "/api/messages", message, key)
    assert (first.status, first.json["duplicate"]) == (201, False)
    assert (second.status, second.json["duplicate"], second.json["ids"]) == (201, True, first.json["ids"])


def test_a_schedule_uses_an_upload_and_its_message_has_the_file(nex: RestClient) -> None:
    made = {"to": "agent:nex", "text": "with a plan", "cron": "0 9 * * *", "uploads": [stored(nex)]}
    reply = nex.request("POST", "/api/schedules", made)
    assert reply.status == 201, reply
    assert nex.request("POST", "/api/schedules", made).code == "not_found"
    ran = nex.request("POST", f"/api/schedules/{reply.json['id']}/run")
    assert ran.status == 200, ran
    wait_until(lambda: said(nex, "with a plan"))
    (one,) = said(nex, "with a plan")
    assert get(nex, f"/api/attachments/{one}/1").body == CONTENT


def said(client: RestClient, text: str) -> list[str]:
    """Return the newest envelopes of somebody with this text."""
    found = client.call("envelope.list", page_size=20)["envelopes"]
    return [one["id"] for one in found if one["text"] == text]

"""Logins of people: the one-time link, the two halves that a browser has, and how a login ends."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from freezegun import freeze_time

from hiboss.api.login_codes import FAILURES, LIVES_MS, WINDOW_MS, LoginCodes
from hiboss.core.errors import LoginRefused, TooManyAttempts
from hiboss.testing.running_daemon import Answered
from tests.support.parties import person
from tests.support.raising import raised
from tests.support.waits import wait_until
from tests.support.web_clients import bearer
from tests.support.web_daemons import Answer, Browser, WebDaemon, web_daemon, web_fixture

_numbers = itertools.count(1)


web = web_fixture()


def use(web: WebDaemon, code: object) -> Answer:
    return web.request("POST", "/login", [("Origin", web.url)], {"code": code})


def whoami(web: WebDaemon, browser: Browser) -> Answer:
    """Ask something as the page of a browser does."""
    return web.request("GET", "/api/conversations", browser.headers(web.url))


# --- the link ------------------------------------------------------------------------------


def test_a_link_logs_in_once(web: WebDaemon) -> None:
    code = web.link()
    assert use(web, code).status == 200
    again = use(web, code)
    assert (again.status, again.code) == (401, "login_refused") and not again.all("set-cookie")


def test_a_link_used_by_many_at_once_logs_one_of_them_in(web: WebDaemon) -> None:
    code = web.link()
    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(lambda _: use(web, code).status, range(8)))
    assert found[0] == 200 and set(found[1:]) <= {401, 429}


def test_the_code_is_in_the_fragment_which_no_server_sees(web: WebDaemon) -> None:
    url = web.call("web.link", token=web.token("boss"))["url"]
    assert url.startswith(f"{web.url}/login#") and "?" not in url
    assert web.request("GET", "/login").status == 200


def test_a_login_needs_json_with_a_code_and_nothing_else(web: WebDaemon) -> None:
    for body in (
        {},
        {"code": 7},
        {"code": None},
        {"code": ["x"]},
        {"code": "x", "name": "boss"},
        {"code": {}},
    ):
        assert web.request("POST", "/login", (), body).code == "invalid_params"
    assert web.request("POST", "/login", (), {"code": "x" * 5_000}).status == 413
    assert web.request("POST", f"/login?code={web.link()}", (), {}).code == "invalid_params"


def test_a_code_is_no_token(web: WebDaemon) -> None:
    code = web.link()
    assert web.request("GET", "/api/conversations", bearer(code)).code == "bad_token"
    assert use(web, code).status == 200


def test_nobody_makes_a_link_for_somebody_else_but_the_boss(web: WebDaemon) -> None:
    for token, params, code in (
        (person(web).token, {"name": "boss"}, "boss_only"),
        (web.token("nex"), {"name": "boss"}, "not_a_person"),
        (web.token("nex"), {}, "not_a_person"),
    ):
        assert raised(Answered, web.call, "web.link", token=token, **params).stable_code == code


@pytest.mark.parametrize("ends", [["token.rotate"], ["delete"], ["delete", "register"]], ids=" and ".join)
def test_a_link_and_a_login_end_with_the_token_and_with_the_person_and_are_not_of_the_next_one_of_that_name(
    web: WebDaemon, ends: list[str]
) -> None:
    name = person(web).name
    browser, code, boss = web.log_in(name), web.link(name), web.log_in()
    assert whoami(web, browser).status == 200
    for verb in ends:
        web.call(f"user.{verb}", token=web.token("boss"), name=name)
    assert use(web, code).code == "login_refused"
    assert (whoami(web, browser).code, whoami(web, boss).status) == ("bad_token", 200)


def test_a_link_ends_when_all_browsers_are_logged_out(web: WebDaemon) -> None:
    name = person(web).name
    browser, code = web.log_in(name), web.link(name)
    assert web.request("POST", "/logout", browser.headers(web.url), {"all": True}).json == {"changed": 1}
    assert use(web, code).code == "login_refused"


def test_a_link_is_good_for_five_minutes_by_the_clock() -> None:
    with freeze_time("2026-01-01 12:00:00") as time:
        codes = LoginCodes()
        early, late = codes.create(1)[0], codes.create(1)[0]
        time.tick(LIVES_MS / 1000 - 1)
        assert codes.take(early) == 1
        time.tick(1)
        with pytest.raises(LoginRefused):
            codes.take(late)


# --- guessing --------------------------------------------------------------------------------


def test_guessing_is_stopped_and_keeps_nobody_out_who_has_a_link(tmp_path: Path) -> None:
    """A code has 256 bits, so a limit protects no code: it must not be a way to lock the boss out."""
    with web_daemon(tmp_path) as web:
        before = web.link()
        found = [use(web, f"guess-{number}") for number in range(FAILURES + 5)]
        assert [one.status for one in found] == [401] * FAILURES + [429] * 5
        assert found[-1].code == "too_many_attempts"
        assert 1 <= int(found[-1].header("retry-after")) <= WINDOW_MS / 1000
        assert use(web, before).status == 200
        assert use(web, before).status == 429  # used up; and now it is a guess like others
        assert use(web, web.link()).status == 200


def test_after_a_while_a_wrong_code_is_a_wrong_code_again() -> None:
    with freeze_time("2026-01-01 12:00:00") as time:
        codes = LoginCodes()
        for _ in range(FAILURES):
            with pytest.raises(LoginRefused):
                codes.take("guess")
        with pytest.raises(TooManyAttempts):
            codes.take("guess")
        time.tick(WINDOW_MS / 1000)
        with pytest.raises(LoginRefused):
            codes.take("guess")


# --- the two halves ----------------------------------------------------------------------------


def test_the_cookie_is_only_for_this_server_and_for_no_script(web: WebDaemon) -> None:
    answer = use(web, web.link())
    words = answer.header("set-cookie").split("; ")
    assert words[0].startswith(f"hiboss_session_{answer.json['tab'].partition('.')[0]}=")
    assert words[1:] == ["Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Strict"]
    assert words[0].partition("=")[2] not in answer.body.decode() and answer.json["tab"] not in words[0]
    assert answer.header("cache-control") == "no-store"


def test_a_cookie_stolen_from_another_port_is_worth_nothing(web: WebDaemon) -> None:
    """The browser sends it to every port of this machine: also to the server of another user there."""
    browser = web.log_in()
    cookie = ("Cookie", browser.pair)
    other = web.log_in()
    own = ("Origin", web.url)
    assert web.request("GET", "/api/conversations", [cookie]).code == "no_token"
    assert web.request("GET", "/api/events", [cookie]).code == "no_token"
    assert web.request("POST", "/api/op/daemon.stop", [cookie, own], {}).code == "no_token"
    for tab in ("", "x", browser.cookie, other.tab, f"{browser.tab}x", browser.tab[:-1], "x" * 10_000):
        answer = web.request("GET", "/api/conversations", [cookie, ("X-Hiboss-Tab", tab)])
        assert (answer.status, answer.code) == (401, "bad_token")
    assert whoami(web, browser).status == 200


def test_half_of_a_login_is_no_bearer_token(web: WebDaemon) -> None:
    browser = web.log_in()
    whole = browser.token
    for half in (
        browser.cookie,
        browser.tab,
        f"hbw_{browser.cookie}",
        f"hbw_{browser.tab}",
        f"hbw_{browser.cookie}.",
        f"hbw_.{browser.tab}",
        f"hbw_{browser.tab}.{browser.cookie}",
        f"{browser.cookie}.{browser.tab}",
        whole[:-1],
        whole.upper(),
    ):
        assert web.request("GET", "/api/conversations", bearer(half)).code == "bad_token"
        assert web.operation("auth.login", None, token=half).status == 401
        assert web.handshake(headers=bearer(half)).code == "bad_token"
    assert web.request("GET", "/api/conversations", [("X-Hiboss-Tab", browser.tab)]).code == "no_token"


def test_a_token_does_not_go_into_the_cookie_or_into_the_tab(web: WebDaemon) -> None:
    boss = web.token("boss")
    for cookie, tab in ((boss, ""), ("", boss), (boss, boss), (boss[4:], ""), (boss[:20], boss[20:])):
        headers = [("Cookie", Browser(cookie, tab).pair), ("X-Hiboss-Tab", tab), ("Origin", web.url)]
        assert web.request("GET", "/api/conversations", headers).code == "bad_token"


def test_cookies_of_other_ports_do_not_hide_ours(web: WebDaemon) -> None:
    browser = web.log_in()
    own = browser.pair.partition("=")[0]
    others = (
        'a={"b": 1}; ',
        "a=[x]; ",
        "a b=c; ",
        'x="open; ',
        "=; ",
        ";;;",
        f"{own}=planted; ",
        "hiboss_session=x; ",
    )
    for before in others:
        headers = [("Cookie", f"{before}{browser.pair}; z=1"), ("X-Hiboss-Tab", browser.tab)]
        assert web.request("GET", "/api/conversations", headers).status == 200, before


def test_two_daemons_on_one_host_keep_their_logins_apart(web: WebDaemon, tmp_path: Path) -> None:
    with web_daemon(tmp_path) as other:
        here, there = web.log_in(), other.log_in()
        jar = ("Cookie", f"{here.pair}; {there.pair}")  # a browser sends the cookies of all ports
        assert here.pair.partition("=")[0] != there.pair.partition("=")[0]
        for daemon, browser in ((web, here), (other, there)):
            headers = [jar, ("X-Hiboss-Tab", browser.tab), ("Origin", daemon.url)]
            assert daemon.request("GET", "/api/conversations", headers).status == 200
        crossed = [jar, ("X-Hiboss-Tab", there.tab), ("Origin", web.url)]
        assert web.request("GET", "/api/conversations", crossed).code == "bad_token"
        ended = other.request(
            "POST", "/logout", [jar, ("X-Hiboss-Tab", there.tab), ("Origin", other.url)], {}
        )
        assert ended.header("set-cookie").startswith(f"{there.pair.partition('=')[0]}=;")
        assert whoami(web, here).status == 200


def test_a_tab_names_no_other_cookie_at_the_end_of_a_login(web: WebDaemon) -> None:
    for tab in ("a; b.c", "a=b.c", "", "x" * 500, "ä.b"):
        headers = [*bearer(web.token("boss")), ("X-Hiboss-Tab", tab), ("Origin", web.url)]
        answer = web.request("POST", "/logout", headers, {})
        assert answer.status == 200 and not answer.all("set-cookie"), tab


def test_what_is_no_bearer_token_is_refused(web: WebDaemon) -> None:
    boss = web.token("boss")
    for value in (
        *("Basic Ym9zczpib3Nz", "Bearer", "Bearer ", "bearer\t", ""),
        *(f"Token {boss}", boss, f"Bearer {boss}, Bearer {boss}"),
    ):
        answer = web.request("GET", "/api/conversations", [("Authorization", value)])
        assert (answer.status, answer.code, answer.header("www-authenticate")) == (401, "bad_token", "Bearer")
        assert web.handshake(headers=[("Authorization", value)]).status == 401


# --- the end of a login --------------------------------------------------------------------------


def test_logging_out_ends_this_browser_and_no_other(web: WebDaemon) -> None:
    name = person(web).name
    one, other = web.log_in(name), web.log_in(name)
    answer = web.request("POST", "/logout", one.headers(web.url), {})
    assert answer.json == {"changed": 1}
    assert answer.header("set-cookie").startswith(f"{one.pair.partition('=')[0]}=; Max-Age=0;")
    assert whoami(web, one).code == "bad_token" and whoami(web, other).status == 200
    assert web.request("POST", "/logout", one.headers(web.url), {}).code == "bad_token"


def test_logging_out_everywhere_ends_all_of_a_person_and_of_nobody_else(web: WebDaemon) -> None:
    name = person(web).name
    own, boss = [web.log_in(name) for _ in range(3)], web.log_in()
    assert web.request("POST", "/logout", own[0].headers(web.url), {"all": True}).json == {"changed": 3}
    assert [whoami(web, one).status for one in own] == [401] * 3
    assert whoami(web, boss).status == 200


def test_a_login_of_the_boss_ends_with_the_token_of_the_boss(web: WebDaemon) -> None:
    boss = web.log_in()
    web.call("boss.token.rotate", token=web.token("boss"))
    assert whoami(web, boss).code == web.handshake(headers=bearer(boss.token)).code == "bad_token"


def test_a_login_ends_after_its_days_also_while_the_daemon_was_off(tmp_path: Path) -> None:
    with web_daemon(tmp_path, web_session_days="0.001", heartbeat_seconds=1) as web:
        first = web.log_in()
        assert whoami(web, first).status == 200
        end_at_once(web)
        wait_until(lambda: whoami(web, first).status == 401)
        second = web.log_in()
        assert whoami(web, second).status == 200
        web.kill()
        end_at_once(web)
        web.settings["heartbeat_seconds"] = 3600
        web.start()
        assert whoami(web, second).status == 401


def end_at_once(web: WebDaemon) -> None:
    """Let the logins end now, as if their days were over."""
    with web.database() as database, database:
        database.execute("UPDATE token SET expires_at = created_at WHERE kind = 'web'")


def test_only_hashes_of_a_login_are_stored(web: WebDaemon) -> None:
    browser = web.log_in()
    with web.database() as database:
        text = "\n".join(database.iterdump())
    assert browser.cookie not in text and browser.tab not in text

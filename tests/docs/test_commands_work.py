"""Every command and every program in the README and the docs works as it is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket

import pytest

from tests.docs import pages
from tests.docs.pages import Page
from tests.docs.terminal import Terminal

# A page is many commands: on a busy machine it took 97 s.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PORT = "18787"  # of a server in docs/providers.md; here it gets one that nobody else has
WITH_HTTP = {"README.md", "docs/web.md", "docs/mcp.md"}
WITH_BLOCKS = [path for path in pages.written() if Page.read(path).blocks("sh", "python", "text")]


def test_the_pages_with_commands_are_those_expected() -> None:
    assert {
        "README.md",
        "docs/quickstart.md",
        "docs/permissions.md",
        "docs/delivery.md",
        "docs/adapters.md",
        "docs/chat.md",
        "docs/providers.md",
        "docs/turns.md",
        *(
            f"docs/{name}.md"
            for name in ("mailboxes", "lists", "groups", "receipts", "metrics", "web", "mcp")
        ),
    } <= set(WITH_BLOCKS)


@pytest.mark.parametrize("path", WITH_BLOCKS)
def test_a_reader_can_follow_the_page(path: str, tmp_path: Path) -> None:
    page = Page.read(path)
    installs = any("make up" in block.body for block in page.blocks("sh"))
    with socket() as keeper, Terminal(tmp_path, installed=not installs, web=path in WITH_HTTP) as terminal:
        keeper.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # bound all the time, and the server may bind it too
        keeper.bind(("127.0.0.1", 0))
        terminal.read(replace(page, text=page.text.replace(PORT, str(keeper.getsockname()[1]))))


@pytest.mark.parametrize("path", [path for path in WITH_BLOCKS if path != "README.md"])
def test_a_page_uses_a_home_of_its_own_and_stops_its_daemon(path: str) -> None:
    lines = [line for block in Page.read(path).blocks("sh") for line in block.body.splitlines()]
    assert lines[0].startswith('export HIBOSS_HOME="$(mktemp -d)"')
    assert lines[1].startswith(("hiboss up --detach", "make up ARGS=--detach"))
    assert lines[-2] == "hiboss daemon stop" and lines[-1].startswith("unset HIBOSS_HOME")


def test_make_up_prints_the_second_command_of_the_readme(tmp_path: Path) -> None:
    first, second = Page.read("README.md").blocks("sh")[:2]
    arguments = second.body.strip().removeprefix(".venv/bin/hiboss ")
    assert arguments != second.body.strip()
    with Terminal(tmp_path, installed=False, forked=False) as terminal:
        terminal.follow(first)
        assert f"bin/hiboss {arguments}\n" in terminal.printed

"""What the acceptance tests share: a daemon that dies and is started again, and a post office."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.soak_post import Post
from tests.support.mortals import Mortal
from tests.support.shell_agents import end_all


@pytest.fixture(scope="module")
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    """A daemon that may die; a module may name variables for it in ENVIRONMENT."""
    mortal = Mortal(tmp_path_factory.mktemp("d"), **getattr(request.module, "ENVIRONMENT", {}))
    mortal.start()
    yield mortal
    mortal.stop()
    mortal.check()


@pytest.fixture
def outlived(daemon: Mortal) -> Iterator[Mortal]:
    """The daemon; after the test it runs, and no agent of it does."""
    yield daemon
    if daemon.process is None:
        daemon.start()
    end_all(daemon)


@pytest.fixture(scope="module")
def _post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    post = Post(tmp_path_factory.mktemp("p"))
    yield post
    post.daemon.stop()


@pytest.fixture
def post(_post: Post) -> Iterator[Post]:
    """A post office that is quiet at the beginning of each test, with nothing scripted."""
    yield _post
    if _post.daemon.process is None:
        _post.start()
    _post.script()
    _post.quiet()

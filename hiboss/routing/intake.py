"""The intake: what comes in from platforms, in two stages.

`take` stores updates as they came, and the platform's offset may advance. Then the adapter is asked what
they mean (`digest`), in the order of each chat and for many chats at once, so that a slow download
holds up only its own chat. Presses, memberships and commands of the boss act right after the first stage.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..core import bounded_calls, clock
from ..core.contracts.adapter import Taken
from ..core.contracts.failures import AccountError, LaneError, Refused, named_seconds
from ..core.contracts.inbound import Digested, Inbound, NotYet, Update, path_of
from ..core.crashpoint import DIGESTED, TAKEN, crashpoint
from ..core.errors import HibossError, NotBound, UnknownBinding
from ..core.paths import Home
from ..core.quoting import storable
from ..core.settings import Settings
from ..core.work_queue import WorkQueue
from ..store import intake, places, platform_updates
from ..store.connection import Row
from ..store.envelopes import CRASHES
from ..store.intake import Meaning
from ..store.store import Store
from .commands import Commands
from .inbound_text import OverLimit, clean_id
from .intake_failures import Later, Line, LineWaits, is_of_the_store, later_after, problem_of
from .router import Router
from .update_forms import LARGEST_RAW, check_place, new_update, stored_inbound, stored_update

log = logging.getLogger(__name__)
UPDATES = 50  # that are given to one digest
PLACE_SECONDS = 1.0  # after which a digestion gives its place to another chat
MOST_ASIDE = 200  # digestions of one binding that gave their place away and still work
BURST = 50  # digests of one chat before another chat gets its place
RETRY_SECONDS = (1.0, 5.0)  # after the first and the second failure; the third is the last
DEFECT_SECONDS = 30.0  # after a defect of ours
LONGEST_WAIT = 60.0  # seconds of one NotYet
MOST_WAITS = 20  # of NotYet in a row, without a new update
STOP_SECONDS = 5.0
EARLY_SECONDS = 0.2  # between two looks whether a post that a reply is to is confirmed
LONGEST_EARLY = 2.0  # seconds in all
RAW_MS = 7 * 86_400_000  # so long updates are kept as they came
EMPTY_EVERY_MS = 3_600_000
_ACTING = ("press", "membership", "stop")  # and the commands that `Commands` knows


class Intake:
    """Takes updates from adapters and digests them, `intake.parallel_chats` of one binding at once."""

    def __init__(self, store: Store, home: Home, settings: Settings, router: Router) -> None:
        self._store = store
        self._settings = settings
        self._router = router
        # In media/: no other part of the home may give its files to a message.
        self._downloads = os.path.join(home.media, ".downloads")
        self.commands = Commands(store)
        self._left_over = 0  # updates up to this one were stored by an earlier daemon
        self._emptied_at = 0
        # By an earlier id of a chat: the line of its later one, which waits for it.
        self._behind: defaultdict[Line, set[Line]] = defaultdict(set)
        self._queue: WorkQueue[Line] = WorkQueue(
            lambda: settings.parallel_chats, self._serve, group=lambda line: line.binding
        )
        self._waits = LineWaits(self._queue)
        # Set in hiboss/daemon/wiring.py.
        self.adapter: Callable[[int], Any]  # the running one of a binding; raises LaneError
        self.renamed: Callable[[int], None] = lambda binding: None
        self.boss_spoke: Callable[[], None] = lambda: None
        self.reposted: Callable[[], None] = lambda: None  # posts must change: what they show was edited
        self.decided: Callable[[int], None] = lambda message: None  # its buttons are not needed any more

    def start(self) -> None:
        """Delete what a crash left of downloads."""
        shutil.rmtree(self._downloads, ignore_errors=True)
        os.makedirs(self._downloads, mode=0o700, exist_ok=True)
        self._left_over = self._store.read(intake.last)

    async def resume(self, binding: int, adapter: str) -> None:
        """Go on with what waits. Called when the adapter of a binding runs, for the first time or again."""
        for row in self._store.read(lambda c: intake.acts_waiting(c, binding)):
            await self._act(binding, adapter, row["id"], stored_inbound(json.loads(row["raw"])["act"]))
        for chat in self._store.read(lambda c: intake.chats_waiting(c, binding)):
            self._waits.forget(Line(binding, chat))
            self._queue.wake(Line(binding, chat))

    def wake(self, chats: Sequence[tuple[int, str]]) -> None:
        """Read these chats of bindings: what was held of them may come in now."""
        for binding, chat in chats:
            self._queue.wake(Line(binding, chat), eager=True)

    async def empty_old(self) -> None:
        """Forget how updates came that were digested long ago, in slices; at most once an hour."""
        now = clock.now()
        if now < self._emptied_at + EMPTY_EVERY_MS:
            return
        self._emptied_at = now
        while await self._store.write(lambda tx: intake.empty_raw(tx, now - RAW_MS)):
            pass

    async def close(self) -> None:
        """Digest nothing more; what waits is digested after the next start."""
        tasks = self._queue.close()
        self._waits.close()
        await bounded_calls.end(tasks, "The digestion of an update", STOP_SECONDS)
        try:
            await self._store.write(intake.survived)
        except HibossError as error:  # then this stop counts as a crash
            log.error("Updates stay marked as being digested: %s", error, extra={"action": "stop"})

    # --- the first stage -------------------------------------------------------------

    async def take(
        self,
        binding: int,
        adapter: str,
        updates: Sequence[Update],
        position: str | None = None,
        missed: tuple[int, int] | None = None,
    ) -> Taken:
        """Store updates as they came; when this returns, the platform's offset may advance."""
        new = [new_update(one, self._settings, acts=self._acts(one)) for one in updates]
        place = None if position is None else clean_id(position, LARGEST_RAW)
        now = clock.now()
        stored = await self._store.write(lambda tx: intake.take(tx, binding, new, place, now, missed))
        crashpoint(TAKEN)
        acted: dict[str, str | None] = {}
        answers: dict[str, str] = {}
        # Also those that are not new: the adapter may have given up waiting for an earlier `take` of them.
        for kept in new:
            number = stored.waiting.get(kept.id)
            if number is None or kept.act is None:
                continue
            if (answer := await self._act(binding, adapter, number, kept.act)) is not None:
                acted[kept.id] = None
                answers |= {kept.id: answer} if answer else {}
        for chat in {one.chat for one in new if one.id in stored.waiting}:
            self._queue.wake(Line(binding, chat), eager=True)
        self._waits.try_again(binding)  # the platform answers
        ids = {kept.id: update.id for update, kept in zip(updates, new, strict=True)}
        return Taken(
            new=frozenset(ids[one] for one in stored.new),
            digested={ids[one]: problem for one, problem in {**stored.digested, **acted}.items()},
            answers={ids[one]: answer for one, answer in answers.items()},
        )

    def _acts(self, update: Update) -> bool:
        return update.act is not None and (update.act.kind in _ACTING or self.commands.knows(update.act))

    async def _act(self, binding: int, adapter: str, number: int, inbound: Inbound) -> str | None:
        """Do what an update says that needs no digestion. What fails is given up and told.

        Return what to tell the person who did it, or an empty text; None: it is left to be digested.
        """
        try:
            check_place(adapter, inbound)
            checked = self._router.check_inbound(inbound)
            if checked.kind == "command":
                if not await self.commands.act(binding, adapter, number, checked):
                    return None
                self.boss_spoke()
                return ""
            if checked.kind == "stop":
                await self.commands.stop(binding, adapter, number, checked)
                return ""
            meaning = await self._store.timed_write_until_done(
                lambda tx, now: intake.settle(tx, binding, adapter, [number], checked, (), now)
            )
        except (UnknownBinding, NotBound):
            return ""  # the binding has ended
        except Exception as error:  # also a defect: this one is lost, the others go on
            if not isinstance(error, (HibossError, Refused)):
                log.exception("An update could not act.", extra={"action": "intake"})
            problem = problem_of(error)
            await self._store.timed_write_until_done(lambda tx, now: intake.give_up(tx, number, problem, now))
            return ""
        await self._follow(binding, meaning)
        return meaning.answer or ""

    # --- the second stage ------------------------------------------------------------

    async def _serve(self, line: Line, eager: bool) -> None:
        """Digest what waits in one chat."""
        try:
            for _ in range(BURST):
                if not await self._digest_next(line):
                    return
            self._queue.once_more(line)
        except Later as later:
            self._waits.wait(line, later)
        except HibossError as error:  # the store cannot be used now
            log.error("Updates are digested later: %s", error, extra={"action": "intake"})
            self._waits.wait(line, Later(RETRY_SECONDS[0]))
        except Exception:  # a defect of ours
            log.exception("Updates were not digested.", extra={"action": "intake"})
            self._waits.wait(line, Later(DEFECT_SECONDS))

    async def _digest_next(self, line: Line) -> bool:
        """Digest the first updates of a chat; return False if nothing can be done now."""
        rows = self._store.read(lambda c: intake.waiting(c, line.binding, line.chat, UPDATES))
        state = self._waits.known(line)
        if not rows or self._queue.closed:
            self._waits.forget(line)
            return False
        is_early = state is not None and asyncio.get_running_loop().time() < state.until
        if is_early and state is not None and (not state.waits or rows[-1]["id"] == state.seen):
            return False  # its timer wakes it
        first = rows[0]["id"]
        earlier = self._store.read(lambda c: intake.earlier_id(c, line.binding, line.chat, first))
        if earlier is not None:
            self._behind[Line(line.binding, earlier)].add(line)  # which wakes it
            return False
        try:
            adapter = self.adapter(line.binding)
        except LaneError:
            return False  # `resume` wakes it
        waited = state is not None and state.waits > 0 and rows[-1]["id"] == state.seen
        try:
            if rows[0]["id"] > self._left_over:
                await self._digest(adapter, line, rows, waited=waited)
            else:
                await self._digest_with_care(adapter, line, rows, waited=waited)
        except (UnknownBinding, NotBound):
            return False  # the binding has ended
        if self._waits.forget(line):
            self._waits.try_again(line.binding)  # the platform failed, and answers now
        for behind in self._behind.pop(line, ()):
            self._queue.wake(behind)
        return True

    async def _digest_with_care(self, adapter: Any, line: Line, rows: list[Row], *, waited: bool) -> None:
        """Digest what an earlier daemon left: it may be what that one died of."""
        number, crashes = rows[0]["id"], rows[0]["crashes"]
        if crashes >= CRASHES:
            problem = f"the daemon ended {crashes} times in a row while it was digested"
            log.error("An update of b%d was given up: %s", line.binding, problem, extra={"action": "intake"})
            await self._store.timed_write_until_done(lambda tx, now: intake.give_up(tx, number, problem, now))
            await self._tell(adapter, stored_update(rows[0]), problem)
            return
        await self._store.write_until_done(lambda tx: intake.begin(tx, number))
        try:
            await self._digest(adapter, line, rows, waited=waited)
        except Later:
            await self._store.write_until_done(lambda tx: intake.survived(tx, number))
            raise

    async def _digest(self, adapter: Any, line: Line, rows: list[Row], *, waited: bool) -> None:
        """Digest the first of these updates and store what they mean, or that they failed."""
        updates = [stored_update(one) for one in rows]
        last_try = rows[0]["attempts"] >= len(RETRY_SECONDS)
        directory = os.path.join(self._downloads, os.urandom(8).hex())
        os.mkdir(directory, 0o700)
        try:
            with self._place_for_others(line):
                ask = partial(self._ask, adapter, updates, directory, last_try=last_try)
                answer = await self._answer(ask, line, rows, updates, waited=waited)
            crashpoint(DIGESTED)
            self._check_not_early(line, answer.inbound)
            used = answer.used(updates)
            ids = {one.id for one in used}
            mine = [row for row in rows if row["update_id"] in ids]
            meaning = await self._store_meaning(line, adapter.type, mine, answer.inbound)
        except (Later, NotBound, UnknownBinding):
            raise
        except HibossError as error:
            if is_of_the_store(error):
                raise
            await self._failed(adapter, line, rows[0], updates[0], error, last_try=True)
        except BaseException as error:  # also a defect of an adapter, and SystemExit
            if bounded_calls.is_our_cancellation(error):
                raise
            await self._failed(adapter, line, rows[0], updates[0], error, last_try=last_try)
        else:
            await self._follow(line.binding, meaning)
            for update in used:
                await self._tell(adapter, update, None)
        finally:
            try:
                os.rmdir(directory)
            except OSError:  # it is not empty, or the adapter has removed it
                await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _check_not_early(self, line: Line, inbound: Inbound) -> None:
        """Wait a moment with a reply to a post that the platform is about to confirm: its writer gets it."""
        state = self._waits.state(line)
        if not inbound.replied or inbound.reply_to is None or state.early * EARLY_SECONDS >= LONGEST_EARLY:
            return
        if self._store.read(lambda c: platform_updates.may_be_unconfirmed(c, line.binding, inbound)):
            state.failing_since = None
            state.early += 1
            raise Later(EARLY_SECONDS)

    @contextmanager
    def _place_for_others(self, line: Line) -> Iterator[None]:
        """Let another chat be digested when this takes long: a few slow downloads must not hold up all."""

        def give_place() -> None:
            if self._queue.aside(line.binding) < MOST_ASIDE:
                self._queue.set_aside(line)

        timer = asyncio.get_running_loop().call_later(PLACE_SECONDS, give_place)
        try:
            yield
        finally:
            timer.cancel()
            self._queue.take_back(line)

    async def _ask(
        self, adapter: Any, updates: list[Update], directory: str, *, waited: bool, last_try: bool
    ) -> Digested | NotYet:
        answer = await bounded_calls.call(
            adapter.digest(updates, directory, waited=waited, last_try=last_try),
            f"The digestion of an update by {adapter.type}",
            self._settings.digest_seconds,
        )
        if isinstance(answer, NotYet):
            return answer
        if not isinstance(answer, Digested) or not isinstance(answer.inbound, Inbound):
            raise TypeError(f"digest returned {type(answer).__name__}, not Digested or NotYet")
        answer.used(updates)
        if len(set(map(path_of, answer.inbound.files))) != len(answer.inbound.files):
            raise ValueError("digest listed a file twice: use download_path, so that none overwrites another")
        if answer.inbound.chat != updates[0].chat:
            raise ValueError("digest returned something of another chat")
        return answer

    async def _answer(
        self,
        ask: Callable[..., Awaitable[Digested | NotYet]],
        line: Line,
        rows: list[Row],
        updates: list[Update],
        *,
        waited: bool,
    ) -> Digested:
        """Ask an adapter what updates mean; again at once if the time to wait for more is over already."""
        answer = await ask(waited=waited)
        if isinstance(answer, NotYet) and not waited and self._left(rows, updates, answer) <= 0:
            waited = True
            answer = await ask(waited=True)
        if isinstance(answer, NotYet):
            raise self._not_yet(line, rows, self._left(rows, updates, answer), answer, waited=waited)
        return answer

    def _left(self, rows: list[Row], updates: list[Update], answer: NotYet) -> float:
        """Return how many seconds are left of a wait: it counts from when an update of it was stored.

        A clock that was set back must not make it longer than it is.
        """
        seconds = _wait_of(answer)
        stored_at: int = rows[answer.counts_from(updates)]["received_at"]
        passed = (clock.now() - stored_at) / 1000
        return min(seconds, seconds - passed)

    def _not_yet(
        self, line: Line, rows: list[Row], left: float, answer: NotYet, *, waited: bool
    ) -> Exception:
        """Return what to raise so that the line waits for more updates."""
        state = self._waits.state(line)
        state.failing_since = None
        state.waits = state.waits + 1 if waited else 1
        state.seen = rows[-1]["id"]
        if state.waits > MOST_WAITS:
            state.waits = 0
            return TimeoutError(f"digest waited {MOST_WAITS} times for more updates")
        # One that goes on waiting when the time is over gets its seconds from now on.
        return Later(left if left > 0 else _wait_of(answer))

    async def _store_meaning(
        self, line: Line, adapter: str, rows: Sequence[Row], inbound: Inbound
    ) -> Meaning:
        check_place(adapter, inbound)
        numbers = [int(row["id"]) for row in rows]
        return await self._router.receive(
            adapter,
            inbound,
            lambda tx, checked, files, now: intake.settle(
                tx, line.binding, adapter, numbers, checked, files, now
            ),
        )

    async def _failed(
        self, adapter: Any, line: Line, row: Row, update: Update, error: BaseException, *, last_try: bool
    ) -> None:
        """Store that a try failed, and let the chat wait; or give the update up."""
        state = self._waits.state(line)
        problem = problem_of(error)
        if isinstance(error, AccountError):
            pause = state.pause_of_platform()
            if pause is not None:
                state.waits = 0
                raise later_after(error, pause) from error
        else:
            state.failing_since = None
        if last_try or isinstance(error, Refused):
            # Not of what a stranger can send at will, like an empty message.
            tells = not isinstance(error, Refused) or isinstance(error, OverLimit)
            log.warning(
                "An update of b%d was given up: %s", line.binding, problem, extra={"action": "intake"}
            )
            if await self._store.timed_write_until_done(
                lambda tx, now: intake.give_up(tx, row["id"], problem, now, tell=tells)
            ):
                await self._tell(adapter, update, problem)
            return
        if not isinstance(error, (LaneError, bounded_calls.TookTooLong, TimeoutError)):
            log.error("An adapter failed to digest an update.", exc_info=error, extra={"action": "intake"})
        await self._store.write_until_done(lambda tx: intake.failed_once(tx, row["id"], problem))
        state.waits = 0
        pause = RETRY_SECONDS[min(row["attempts"], len(RETRY_SECONDS) - 1)]
        raise later_after(error, pause) from error

    # --- what follows ----------------------------------------------------------------

    async def _follow(self, binding: int, meaning: Meaning) -> None:
        """Do what follows from what was stored."""
        if meaning.by_boss:
            self.boss_spoke()
        if meaning.reposted:
            self.reposted()
        if meaning.accepted is not None:
            self._router.accepted(meaning.accepted)
        if meaning.left is not None:
            chat = meaning.left
            while await self._store.timed_write_until_done(
                lambda tx, now: places.fail_left(tx, binding, chat, now)
            ):
                pass  # in slices: other writes go between them
        if meaning.renamed:
            self.renamed(binding)
        if meaning.decided is not None:
            self.decided(meaning.decided)
        if meaning.unknown is not None:
            post, words = storable(meaning.unknown, 100), "it has no value, or the post is not ours"
            log.info("b%d: a press on %r was ignored: %s.", binding, post, words, extra={"action": "intake"})

    async def _tell(self, adapter: Any, update: Update, problem: str | None) -> None:
        """Let an adapter clean up after an update; what fails there changes nothing."""
        digested = getattr(adapter, "digested", None)
        if digested is None:
            return
        try:
            await bounded_calls.call(
                digested(update, problem), f"The end of an update of {adapter.type}", STOP_SECONDS
            )
        except BaseException as error:
            if bounded_calls.is_our_cancellation(error):
                raise
            log.warning("An adapter did not clean up: %s", problem_of(error), extra={"action": "intake"})


def _wait_of(answer: NotYet) -> float:
    seconds = named_seconds(answer.seconds)
    return LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)

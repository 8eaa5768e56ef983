"""What happens to one request, apart from its connection: find the bot, note the call, carry it out."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import Any

from .bots import Bot
from .faults import FILE, Fault, FaultBook
from .method_table import COUNTED, SENDING, Method, find_method
from .params import Params
from .refusals import Refusal, not_found, unauthorized
from .world import Call, World

# Refusals that show that something was rendered wrongly. An odd word in a text is nobody's mistake.
_MARKUP = re.compile(
    r"can't parse|: entity |receive an entity|RICH_MESSAGE_(?!EMAIL)|rich message|too long|parse_mode"
)
_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]{3,}")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back over the connection. `drop`: nothing does, and the connection ends."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    drop: bool = False
    bytes_per_second: float | None = None
    call: Call | None = None  # that was carried out

    @classmethod
    def json(cls, content: Any, status: int = 200, call: Call | None = None) -> Reply:
        return cls(status=status, body=json.dumps(content).encode(), call=call)


class CallHandler:
    """Answers calls and downloads."""

    def __init__(self, world: World, faults: FaultBook) -> None:
        self._world = world
        self._faults = faults
        self._delay = 0.0
        self.upload_pace: float | None = (
            None  # bytes a second of files that bots send; None: as fast as it can
        )
        self._hurry = threading.Event()  # lets those that wait for their answer have it

    def call(self, token: str, name: str, params: Params) -> Reply:
        """Answer /bot<token>/<method>."""
        try:
            bot = self._bot(token)
        except Refusal as refusal:
            return Reply.json(refusal.as_json(), refusal.code)
        found = find_method(self._world, name)
        call = self._note(bot, found[0] if found else name, params)
        params.method = call.method
        fault = self._faults.take(call.method, bot.id, params.number("chat_id") or None)
        if fault is not None and (reply := self._fail(fault, call, found, params)):
            return reply
        reply = self._carry_out(call, found, params)
        if call.method in SENDING and self._delay > 0:
            self._hurry.wait(self._delay)
        if fault is not None and fault.carry_out:
            self._unheard(call, fault.kind)
        if fault is not None and fault.kind == "lose_answer":
            return Reply(drop=True)
        if fault is not None and fault.kind == "hang" and fault.carry_out:
            fault.hang()  # everybody sees what was done, but for the caller
        return reply

    @property
    def delay(self) -> float:
        """Return the seconds from a message to the answer that tells of it."""
        return self._delay

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._delay = seconds
        self._hurry.set()
        self._hurry = threading.Event()

    def answering(self, call: Call, *, caller_is_gone: bool) -> None:
        """Note whether there is somebody to hear the answer of a call that was carried out."""
        noted = [one for one in self._world.carried_out if one.call is call]
        if caller_is_gone and not noted:
            self._unheard(call, "caller gone")
        elif noted and not caller_is_gone:  # it hung, and was waited for
            self._world.carried_out.remove(noted[0])

    def download(self, token: str, path: str) -> Reply:
        """Answer /file/bot<token>/<path>."""
        bot = next((one for one in self._world.bots.values() if one.token == token), None)
        fault = self._faults.take(FILE, None if bot is None else bot.id)
        if fault is not None and fault.kind == "hang":
            fault.hang()
        elif fault is not None and fault.kind != "slow":
            return _scripted(fault)
        try:
            self._bot(token)
            file = self._world.files.at(path)
        except Refusal as refusal:
            return Reply.json(refusal.as_json(), refusal.code)
        pace = fault.bytes_per_second if fault is not None else None
        return Reply(body=file.data, content_type="application/octet-stream", bytes_per_second=pace)

    def _bot(self, token: str) -> Bot:
        bot = self._world.bots.get(token)
        if bot is None:
            raise unauthorized() if _TOKEN.fullmatch(token) else not_found()
        return bot

    def _note(self, bot: Bot, method: str, params: Params) -> Call:
        world = self._world
        with world.changed:
            uploads = {field: upload.name for field, upload in params.uploads.items()}
            call = Call(method=method, params=params.values, bot=bot, at=world.clock.now(), uploads=uploads)
            world.calls.append(call)
            world.changed.notify_all()
        return call

    def _fail(
        self, fault: Fault, call: Call, found: tuple[str, Method] | None, params: Params
    ) -> Reply | None:
        """Return what a fault answers; None if the call is carried out all the same."""
        if fault.kind == "hang" and not fault.carry_out:
            fault.hang()
            return None
        if fault.kind in ("hang", "lose_answer", "slow"):
            return None
        if fault.carry_out:
            self._carry_out(call, found, params)
            self._unheard(call, fault.kind if fault.status < 400 else str(fault.status))
        elif fault.retry_after is not None and call.method in SENDING:
            chat = params.number("chat_id") or None
            self._world.limits.told_to_wait(
                call.bot.id, chat, call.method, fault.retry_after, counted=call.method in COUNTED
            )
        reply = _scripted(fault)
        if not reply.drop:
            self._answered(call, reply.status, None)
        return reply

    def _unheard(self, call: Call, why: str) -> None:
        if call.status == 200 and call.method in SENDING:
            self._world.note_unheard(call, why)

    def _carry_out(self, call: Call, found: tuple[str, Method] | None, params: Params) -> Reply:
        try:
            if found is None:
                raise not_found()
            with self._world.changed:
                result = found[1](self._world, call.bot, params)
        except Refusal as refusal:
            if _MARKUP.search(refusal.description):
                params.remark(f"refused: {refusal.description}")
            self._world.complain(call, params.remarks)
            self._answered(call, refusal.code, refusal.as_json())
            return Reply.json(refusal.as_json(), refusal.code)
        self._world.complain(call, params.remarks)
        self._answered(call, 200, result)
        return Reply.json({"ok": True, "result": result}, call=call)

    def _answered(self, call: Call, status: int, answer: Any) -> None:
        with self._world.changed:
            call.status = status
            call.answer = answer
            self._world.changed.notify_all()


def _scripted(fault: Fault) -> Reply:
    if fault.kind in ("drop", "lose_answer"):
        return Reply(drop=True)
    kind = "text/html" if fault.body.startswith(b"<") else "application/json"
    return Reply(status=fault.status, body=fault.body, content_type=kind)

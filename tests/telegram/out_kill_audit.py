"""What must be true of the chats when everything is settled: all posts are there, and what is there twice is explained."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hiboss.channels.telegram.chunk_form import decode
from hiboss.core.address import SYSTEM
from hiboss.core.envelope import Status
from hiboss.testing.bot_api.chats import Chat
from hiboss.testing.bot_api.messages import Message
from hiboss.testing.bot_api.world import Call
from tests.support.telegram_bots import TelegramDaemon
from tests.telegram.out_kill_traffic import MARK, OutTraffic

NOTE = "⏳ Queued behind"
LAST_SECONDS = 1.0  # before a death: what was confirmed then may not be recorded
_ENVELOPES = """
SELECT e.id, e.status, e.binding, e.priority, e.arrived, e.error_kind, e.error_text, e.recipient,
       m.text, m.run, a.name AS place, s.fold AS sender
FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
JOIN address s ON s.id = m.sender
WHERE a.kind = 'channel' ORDER BY e.arrived
"""
_POSTS = """
SELECT envelope, chunk, platform_id, content,
       (SELECT json_group_array(platform_id) FROM post_part t WHERE t.envelope = p.envelope AND t.chunk = p.chunk) AS parts
FROM post p ORDER BY envelope, chunk
"""

Key = tuple[int, int]  # the id of a chat and of a message


@dataclass(kw_only=True)
class Life:
    """A daemon, from its start to its end. One that was not killed has recorded all that it heard."""

    begun: float
    ended: float | None = None
    killed: bool = False

    def __str__(self) -> str:
        return "kill" if self.killed else "stop"

    def has(self, call: Call) -> bool:
        """Tell whether it has made a call; what it sent may be read when it is dead."""
        return self.begun <= call.at and (self.ended is None or call.at <= self.ended + LAST_SECONDS)


class Audit:
    """Compares what is stored with what people see. `wrong` says what is not right, best nothing."""

    def __init__(self, office: TelegramDaemon, traffic: OutTraffic, lives: list[Life]) -> None:
        self._office = office
        self._api = office.api
        self._traffic = traffic
        self._lives = lives
        self.wrong: list[str] = []
        self.figures: Counter[str] = Counter()
        self._known: Counter[Key] = Counter()  # what is recorded, by how many posts
        self._chunks: set[tuple[int, str]] = set()  # texts of chunks, by chat
        self._chats: dict[int, Chat] = {
            chat.id: chat for chat in (*self._api.world.private.values(), *self._api.world.groups.values())
        }
        self._look()

    def __str__(self) -> str:
        figures = self.figures
        return (
            f"sends: {figures['sends']} ({figures['multi']} of several chunks, {figures['answers']} answers, "
            f"{figures['system']} of hiboss)\nchunks: {figures['chunks']} in {figures['messages']} messages\n"
            f"grown: {figures['drafts']} drafts; live posts: {figures['became']} became answers, "
            f"{figures['removed']} were removed\n"
            f"doubles: {figures['chunk']} chunks, {figures['live']} live posts, {figures['note']} notes; "
            f"of these not heard {figures['unheard']}, heard and not recorded {figures['unrecorded']}\n"
            f"doubles-unexplained: {figures['unexplained']}\n"
            f"calls-into-a-wait: {sum(one.during_wait for one in self._api.floods)}\n"
            f"complaints: {len(self._api.complaints)}\nwrong: {len(self.wrong)}"
        )

    def _look(self) -> None:
        posts: dict[int, list[dict[str, Any]]] = {}
        for row in self._office.rows(_POSTS):
            posts.setdefault(row["envelope"], []).append(row)
        envelopes = self._office.rows(_ENVELOPES)
        for one in envelopes:
            self._envelope(one, posts.get(one["id"], []))
        self._accepted({f"e{one['id']}": one for one in envelopes})
        self._order(envelopes, posts)
        for key, number in self._known.items():
            if number > 1:
                self.wrong.append(f"{key} is recorded {number} times")
        explained = self._explanations()
        for chat in self._chats.values():
            for message in self._own(chat):
                if (chat.id, message.id) not in self._known:
                    self._double(chat, message, explained)
            self._grown(chat)
            if chat.draft is not None:
                self.wrong.append(f"a draft stays in {chat}: {chat.draft}")

    # --- what is recorded --------------------------------------------------------------------

    def _envelope(self, one: dict[str, Any], posts: list[dict[str, Any]]) -> None:
        """Look whether the posts of an envelope are there, and say all of its text."""
        self.figures["sends"] += 1
        self.figures["multi"] += len(posts) > 1
        self.figures["answers"] += one["run"] is not None
        self.figures["system"] += one["sender"] == SYSTEM.fold
        self.figures["chunks"] += len(posts)
        if one["status"] != Status.DONE:
            why = f"{one['error_kind']}: {one['error_text']}"
            self.wrong.append(f"e{one['id']} is {Status(one['status']).word}: {why}")
        seen: list[Message] = []
        for post in posts:
            seen += self._post(one, post)
        marks = [mark for message in seen for mark in MARK.findall(message.text)]
        if marks != MARK.findall(one["text"]):
            self.wrong.append(f"e{one['id']}: {one['text'][:30]!r} is seen as {marks}")
        if [message.id for message in seen] != sorted(message.id for message in seen):
            self.wrong.append(f"e{one['id']}: its posts are not in order: {seen}")

    def _post(self, one: dict[str, Any], post: dict[str, Any]) -> list[Message]:
        """Return the messages of a recorded chunk."""
        place, _, topic = one["place"].partition(":")[2].partition("/")
        chat, content = self._chats[int(place)], decode(post["content"])
        self._chunks.add((chat.id, content.text))
        ids = [post["platform_id"], *json.loads(post["parts"])]
        found = [message for number in ids if (message := chat.find(int(number or 0))) is not None]
        what = f"e{one['id']}.{post['chunk']}"
        if len(found) != len(ids) or len(ids) != max(1, len(content.files)):
            self.wrong.append(f"{what}: of {ids} there are {found}")
        for message in found:
            self._known[chat.id, message.id] += 1
            self.figures["messages"] += 1
            if str(message.topic or "") != topic:
                self.wrong.append(f"{what}: {message} is in the topic {message.topic}")
        if found and found[0].rich_source is None and found[0].text.strip() != content.text.strip():
            self.wrong.append(f"{what}: {found[0].text[:60]!r} is not {content.text[:60]!r}")
        if found and found[0].rich_source not in (None, content.rich):
            self.wrong.append(f"{what}: the rich message is not that of the chunk")
        return found

    def _accepted(self, envelopes: dict[str, dict[str, Any]]) -> None:
        """Look whether all is stored that the daemon has accepted."""
        for one in self._traffic.sendings:
            stored = envelopes.get(one.id or "")
            if stored is None or stored["text"] != one.params["text"]:
                self.wrong.append(f"{one.key} was accepted as {one.id} and is not there")

    def _order(self, envelopes: list[dict[str, Any]], posts: dict[int, list[dict[str, Any]]]) -> None:
        """Look whether the first chunks of each lane came in the order in which their envelopes arrived."""
        last: dict[tuple[int, int, int], tuple[int, int]] = {}
        for one in envelopes:
            if not posts.get(one["id"]):
                continue
            lane = one["recipient"], one["binding"], one["priority"]
            number = int(posts[one["id"]][0]["platform_id"] or 0)
            before, earlier = last.get(lane, (0, 0))
            if number < before:
                self.wrong.append(f"e{one['id']} is message {number}, before {before} of e{earlier}")
            last[lane] = number, one["id"]

    # --- what nobody recorded ----------------------------------------------------------------

    def _own(self, chat: Chat) -> list[Message]:
        return [one for one in chat.messages if one.sender is self._traffic.bot and not one.service]

    def _grown(self, chat: Chat) -> None:
        """Count what grew."""
        self.figures["drafts"] += len(chat.drafts)
        for message in [one for one in chat.history.values() if one.sender is self._traffic.bot]:
            self.figures["removed"] += message.deleted and not message.text.startswith(NOTE)
            self.figures["became"] += len(set(message.texts)) > 1 and not message.deleted

    def _double(self, chat: Chat, message: Message, explained: dict[Key, str]) -> None:
        """Count a message that no post is recorded for."""
        why = explained.get((chat.id, message.id), "unexplained")
        is_chunk = message.files or (chat.id, message.text) in self._chunks or message.rich_source
        kind = "note" if message.text.startswith(NOTE) else "chunk" if is_chunk else "live"
        self.figures[why] += 1
        self.figures[kind] += 1
        if why == "unexplained":
            when = self._when(chat, message)
            self.wrong.append(
                f"nobody knows {message!r:.200} in {chat}, nor why it is there ({kind}, {when})"
            )

    def _when(self, chat: Chat, message: Message) -> str:
        """Say when a message was posted: how long before which end of the daemon."""
        for call in self._api.calls:
            if message.id in _made(call) and int(call.params["chat_id"]) == chat.id:
                ends = [(life.ended - call.at, life) for life in self._lives if life.ended and life.has(call)]
                return ", ".join(f"{left:.2f} s before a {life}" for left, life in ends) or "by the last one"
        return "by a call that nobody knows"

    def _explanations(self) -> dict[Key, str]:
        """Return why messages may be there that are not recorded."""
        found: dict[Key, str] = {}
        made = [(call, _made(call)) for call in self._api.calls]
        for life in self._lives:
            if not life.killed or life.ended is None:
                continue
            in_life = [(call, ids) for call, ids in made if ids and life.has(call)]
            last = {_place(call): call for call, _ in in_life}
            for call, ids in in_life:
                # Nothing is posted in a place before the last is recorded, but for what grows there.
                if call is last[_place(call)] or call.at > life.ended - LAST_SECONDS:
                    found |= {(int(call.params["chat_id"]), one): "unrecorded" for one in ids}
        for unheard in self._api.carried_out:
            chat = int(unheard.call.params["chat_id"])
            found |= {(chat, one): "unheard" for one in unheard.message_ids}
        return found


def _made(call: Call) -> list[int]:
    """Return the messages that a call has made, as its caller was told."""
    if not call.method.startswith("send") or call.status != 200:
        return []
    answers = call.answer if isinstance(call.answer, list) else [call.answer]
    return [one["message_id"] for one in answers if isinstance(one, dict) and "message_id" in one]


def _place(call: Call) -> tuple[str, str]:
    return str(call.params["chat_id"]), str(call.params.get("message_thread_id") or "")

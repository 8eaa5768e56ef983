"""The adapter of one webhook: `channel:webhook:<name>`.

Without a url it receives: the door for HTTP hands requests over whose signature was checked
(hiboss/api/webhook_receiving.py), and nothing can be posted there. With a url it posts: each letter is one
signed request. Facts are such letters (hiboss/routing/fact_webhooks.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field, SecretStr, field_validator, model_validator

from ...core.address import SYSTEM
from ...core.contracts.adapter import Account, AdapterSettings, Chat, Checked, Letter, Take
from ...core.contracts.failures import AccountError, EnvelopeError, LaneError
from ...core.contracts.inbound import Digested, Update
from ...core.paths import Home
from ...core.server_urls import check_url
from ...core.settings import Configuration
from ...core.webhook_signatures import check_secret, key_of
from . import request_text, templates
from .posting import Poster
from .request_text import TEXT_BYTES, Wording

TYPE = "webhook"
LONGEST_NAME = 64
LISTEN_SECONDS = 5.0  # that a request waits for the end of a start
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class WebhookSettings(AdapterSettings):
    """What a webhook needs. Those that receive have no url, and those that post only have one."""

    hook: str = Field(description="the name of the webhook: small letters, digits and single dashes")
    secret: SecretStr = Field(description="signs the requests: whsec_ and 24 to 64 bytes in base64")
    template: str | None = Field(None, description="the text of what comes in, with fields like {ref}")
    subject: str | None = Field(None, description="the subject of what comes in, with fields too")
    url: str | None = Field(None, description="where to post: https, or http on this machine")

    @field_validator("hook")
    @classmethod
    def _is_a_name(cls, hook: str) -> str:
        return check_name(hook)

    @field_validator("secret")
    @classmethod
    def _is_a_secret(cls, secret: SecretStr) -> SecretStr:
        check_secret(secret.get_secret_value())
        return secret

    @field_validator("template", "subject")
    @classmethod
    def _is_a_template(cls, given: str | None) -> str | None:
        return None if given is None else templates.check(given, request_text.SPECIAL)

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is not None:
            check_url(url)
        return url

    @model_validator(mode="after")
    def _has_one_direction(self) -> WebhookSettings:
        if self.url is not None and (self.template is not None or self.subject is not None):
            raise ValueError("--template and --subject are for what comes in; with --url nothing does")
        return self


def check_name(name: str) -> str:
    """Return the name of a webhook if it can be one; raise ValueError if not."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(f"has small letters, digits and single dashes, at most {LONGEST_NAME}")
    return name


class WebhookAdapter:
    """A webhook: a program posts requests to hiboss, or hiboss posts them to a web server."""

    type: ClassVar[str] = TYPE
    open_to_all: ClassVar[bool] = True  # whoever has the secret may write
    Settings = WebhookSettings

    def __init__(self, account: Account) -> None:
        self._name = account.name
        self._home = account.home
        self._settings: WebhookSettings = account.settings
        self._take: Take
        self._listens = asyncio.Event()
        self._wording = Wording(template=self._settings.template, subject=self._settings.subject)
        self._poster: Poster | None = None
        self.refused = 0  # requests with its name and a wrong signature, since it was started

    @classmethod
    async def check(cls, given: WebhookSettings, home: str) -> Checked:
        return cls.unchecked(given)

    @classmethod
    def unchecked(cls, given: WebhookSettings) -> Checked:
        return Checked(account=given.hook, settings=given, chats=[Chat(given.hook)])

    async def start(self) -> None:
        key = key_of(self.secret)
        if key is None:
            raise AccountError("no_secret", f"its secret is damaged; hiboss webhook rotate {self._name}")
        limit = Configuration(Home(self._home).config, os.environ).settings.text_bytes
        self._wording = Wording(
            template=self._settings.template,
            subject=self._settings.subject,
            most_bytes=max(1, min(TEXT_BYTES, limit - 4)),  # with room for the … of a text that is cut
        )
        if self._settings.url is not None:
            self._poster = Poster(self._settings.url, key)

    async def stop(self) -> None:
        if self._poster is not None:
            await self._poster.close()

    @property
    def secret(self) -> str:
        return self._settings.secret.get_secret_value()

    # --- in --------------------------------------------------------------------------

    async def listen(self, take: Take) -> None:
        """Let requests be handed over. They come by `receive`, so this only waits."""
        self._take = take
        self._listens.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._listens.clear()

    async def receive(self, delivery: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Store a request whose signature was checked; return False if it was stored before.

        Raises LaneError if it does not listen, also not in a moment.
        """
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                await self._listens.wait()
        except TimeoutError:
            raise LaneError("not_listening", "the webhook is starting or stopping") from None
        taken = await self._take([request_text.update(delivery, self._name, headers, body)])
        return delivery in taken.new

    async def digest(
        self, updates: Sequence[Update], downloads: str, *, waited: bool, last_try: bool
    ) -> Digested:
        # In a thread: reading a large document takes some milliseconds.
        return Digested(await asyncio.to_thread(self._wording.inbound, updates[0], downloads))

    # --- out -------------------------------------------------------------------------

    def chunks(self, letter: Letter) -> list[str]:
        return [letter.text]

    async def post(self, letter: Letter, number: int, chunk: str) -> str:
        if self._poster is None:
            raise EnvelopeError("receives_only", f"this webhook only receives: {self._name}")
        if letter.files:
            raise EnvelopeError("no_files", "a webhook takes no files")
        key = letter.chunk_key(number)
        await self._poster.post(key, _body(letter, chunk))
        return key


def _body(letter: Letter, text: str) -> bytes:
    """Return the body of the one request for a letter. What hiboss itself sends in JSON is one already."""
    if letter.sender == str(SYSTEM) and letter.type == "json":
        return text.encode()
    said = {"from": letter.sender, "subject": letter.subject, "type": letter.type, "text": text}
    return json.dumps({"type": "message", "data": said}, ensure_ascii=False).encode()

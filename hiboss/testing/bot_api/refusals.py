"""How the platform says no: an HTTP status, a sentence, and sometimes parameters for the program."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A call is answered with {"ok": false, "error_code": …, "description": …}."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            answer["parameters"] = self.parameters
        return answer


def bad_request(text: str, **parameters: int) -> Refusal:
    return Refusal(400, f"Bad Request: {text}", **parameters)


def forbidden(text: str) -> Refusal:
    return Refusal(403, f"Forbidden: {text}")


def too_many_requests(seconds: int) -> Refusal:
    return Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized")


def not_found() -> Refusal:
    return Refusal(404, "Not Found")


def other_poller() -> Refusal:
    return Refusal(
        409,
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    )


def webhook_is_active() -> Refusal:
    return Refusal(
        409,
        "Conflict: can't use getUpdates method while webhook is active; "
        "use deleteWebhook to delete the webhook first",
    )

"""What a test asks about the calls: which there were, what was wrong with them, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable

from .flood_limits import Flood
from .world import Call, CarriedOut, World


class CallWatch:
    """Looks at the calls of a server."""

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def calls(self) -> list[Call]:
        """Return every call so far, in order."""
        with self.world.changed:
            return list(self.world.calls)

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method.lower() == method.lower()]

    def wait_for_call(
        self,
        method: str,
        where: Callable[[Call], bool] = lambda call: True,
        *,
        count: int = 1,
        answered: bool = False,
        seconds: float = 30,
    ) -> Call:
        """Wait until there were `count` such calls in all, and return the last of them."""

        def found() -> list[Call]:
            calls = [call for call in self.calls_of(method) if where(call)]
            return [call for call in calls if call.status is not None or not answered]

        with self.world.changed:
            if not self.world.changed.wait_for(lambda: len(found()) >= count, seconds):
                last = self.calls[-10:]
                raise AssertionError(f"{count} {method} not seen after {seconds} s; the last calls: {last}")
            return found()[count - 1]

    def wait_for(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until something about this server is true. It is looked at after every change."""
        with self.world.changed:
            if not self.world.changed.wait_for(condition, seconds):
                raise AssertionError(f"not true after {seconds} s; the last calls: {self.calls[-10:]}")

    @property
    def strict(self) -> bool:
        """Say whether `complaints` are written; they are, unless a test switches it off."""
        return self.world.strict

    @strict.setter
    def strict(self, on: bool) -> None:
        self.world.strict = on

    @property
    def complaints(self) -> list[str]:
        """Return what the platform would silently drop, mend or ignore, and markup that it refuses."""
        return self.world.complaints

    @property
    def floods(self) -> list[Flood]:
        """Return every 429 that was given, and every message or edit sent into a wait."""
        return self.world.limits.floods

    @property
    def carried_out(self) -> list[CarriedOut]:
        """Return the calls that were carried out although the caller saw an error, or was gone."""
        return self.world.carried_out

"""Bad input of the operation that shows the metrics (`bad_input.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.api.bad_input_row import Row, row


def observed() -> Iterator[Row]:
    yield row("daemon.metrics", {}, "forbidden", "observe|privileged", "daemon metrics")
    yield row("daemon.metrics", {}, "forbidden", "observe|standard", by="ann")
    yield row("daemon.metrics", {"names": ["hiboss_runs"]}, "invalid_params", "names")

"""Metrics as text, in the exposition format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from ..api.metrics import FamilyJson

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[FamilyJson]) -> bytes:
    """Return the families of `daemon.metrics` as Prometheus reads it, with CONTENT_TYPE.

    The first call imports prometheus-client, which takes 65 ms: make it on another thread.
    """
    from prometheus_client.exposition import generate_latest
    from prometheus_client.metrics_core import Metric

    class Families:
        """What the library asks for its metrics."""

        def collect(self) -> list[Metric]:
            return made

    made = []
    for one in families:
        # The library adds the ending of a counter itself.
        family = Metric(one["name"].removesuffix("_total"), one["help"], one["type"])
        for sample in one["samples"]:
            family.add_sample(sample["name"], sample["labels"], sample["value"])
        made.append(family)
    return generate_latest(Families())

"""The table of docs/metrics.md, from the table of the metrics."""

from __future__ import annotations

from hiboss.core.metrics import TABLE, Metric

from .markdown import code, refreshed, table


def make(page: str) -> str:
    """Return the page with its table made anew."""
    return refreshed(page, {"metrics": metrics})


def metrics() -> str:
    """One line for each metric."""
    return table(["metric", "type", "labels", "meaning"], [_row(metric) for metric in TABLE])


def _row(metric: Metric) -> list[str]:
    return [code(metric.name), metric.kind, ", ".join(map(code, metric.labels)), metric.help]

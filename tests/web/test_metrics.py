"""The exposition: a reader of Prometheus finds in it what `daemon.metrics` answered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hiboss.core.metrics import Histogram
from hiboss.testing.running_daemon import RunningDaemon
from hiboss.web.metrics import CONTENT_TYPE, exposition
from tests.support.parties import agents, boss


@pytest.fixture(scope="module")
def families(daemon: RunningDaemon) -> Iterator[list[Any]]:
    ada, bob = agents(daemon, 2)
    ada.tell(bob)
    ada.refusal("envelope.get", id="e99")
    yield boss(daemon).call("daemon.metrics")["families"]


def read(text: bytes) -> dict[str, Any]:
    return {one.name: one for one in text_string_to_metric_families(text.decode())}


def test_a_reader_finds_every_family_and_every_sample(families: list[Any]) -> None:
    found = read(exposition(families))
    for family in families:
        one = found[family["name"].removesuffix("_total")]  # the reader takes the ending of a counter away
        assert (one.type, one.documentation) == (family["type"], family["help"])
        wanted = [(sample["name"], sample["labels"], sample["value"]) for sample in family["samples"]]
        assert [(sample.name, sample.labels, sample.value) for sample in one.samples] == wanted
    assert len(found) == len(families)


def test_the_text_is_of_the_version_that_the_content_type_says(families: list[Any]) -> None:
    assert CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"
    text = exposition(families).decode()
    assert text.endswith("\n") and "# EOF" not in text
    assert '\nhiboss_requests_total{door="socket"} ' in text


def test_a_histogram_counts_the_smaller_values_too_and_keeps_its_labels() -> None:
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.1, 0.5, 3.0, -1.0):
        histogram.observe(seconds)
    samples = [one._asdict() for one in histogram.samples("hiboss_x_seconds", {"adapter": 'a"b\\c\nd'})]
    found = read(
        exposition([{"name": "hiboss_x_seconds", "type": "histogram", "help": "x", "samples": samples}])
    )  # type: ignore[typeddict-item]
    values = [(one.name, one.labels.get("le"), one.value) for one in found["hiboss_x_seconds"].samples]
    assert values == [
        ("hiboss_x_seconds_bucket", "0.1", 2),
        ("hiboss_x_seconds_bucket", "1.0", 3),
        ("hiboss_x_seconds_bucket", "+Inf", 4),
        ("hiboss_x_seconds_sum", None, 3.6),
        ("hiboss_x_seconds_count", None, 4),
    ]
    assert found["hiboss_x_seconds"].samples[0].labels["adapter"] == 'a"b\\c\nd'


def test_the_library_is_imported_by_the_first_scrape_only() -> None:
    code = (
        "import sys, hiboss.web.metrics, hiboss.daemon.lifecycle; print('prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

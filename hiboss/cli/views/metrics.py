"""What metrics look like: a line for each sample, as a program for monitoring reads them."""

from __future__ import annotations

from typing import Any

from .. import output


def samples(result: dict[str, Any]) -> None:
    """Print the samples of all metrics."""
    if output.Mode.json:
        output.document(result)
        return
    output.lines([_line(sample) for family in result["families"] for sample in family["samples"]])


def _line(sample: dict[str, Any]) -> str:
    labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample["labels"].items())
    return f"{sample['name']}{f'{{{labels}}}' if labels else ''} {sample['value']}"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

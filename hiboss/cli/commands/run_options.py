"""What can be given to `hiboss run …`."""

from __future__ import annotations

from typing import Annotated, Literal

from ..options import argument

RUN_STATUS = Literal["running", "completed", "failed", "cancelled", "interrupted"]
Id = Annotated[str, argument("ID", "The run, like r9; hiboss run list shows them.")]

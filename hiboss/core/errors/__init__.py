"""Every error hiboss can answer with: `base` says what an error is, `catalog` lists them all."""

from .base import *
from .catalog import *

"""Every error hiboss can answer with: one tree, a stable code each.

A class's docstring is its message; `{names}` in it are the facts given when it is raised, which
stay readable as attributes and travel to the caller. Each class owns its JSON-RPC code, HTTP
status and exit status, so a door maps by class and decides nothing.
"""

from .access import *
from .base import *
from .machine import *
from .requests import *

"""Every error that hiboss can answer with: one tree of classes, each with a stable code.

- `base`: the base class and the exit statuses
- `requests`: errors in the form, size or attachments of a request
- `access`: missing permission, things that do not exist, conflicts
- `groups`: who may do what in conversations and groups
- `machine`: settings, store, home, daemon
- `web`: where an HTTP request comes from, its form, logins of people

The docstring of a class is its message. `{names}` in it are facts, given when it is raised; they
can be read as attributes and are sent to the caller. Each class has its JSON-RPC code, HTTP status
and exit status, so a door only looks them up.
"""

from .access import *
from .base import *
from .groups import *
from .machine import *
from .requests import *
from .web import *

"""The scripts that run on hosts: POSIX sh, in files beside the modules that send them.

A line `@NAME@` stands for the file with this name below this folder.
"""

import re
import shlex
from functools import cache
from importlib import resources

from intop.hosts.answers import joined, lines

UNTRUSTED = 74
"""Exit code of `trusted.sh`: others can change a folder."""
_PART = re.compile(r"^@(?P<name>[a-z_/]+\.sh)@\n", re.MULTILINE)


def script(name: str, **settings: object) -> str:
    """Return a script with its parts, behind its variables.

    It has no comments, since it is sent to hosts again and again.
    """
    values = (f"{variable}={shlex.quote(str(value))}" for variable, value in settings.items())
    return joined(values) + _without_comments(name)


@cache
def _without_comments(name: str) -> str:
    return joined(line for line in lines(whole(name)) if not line.lstrip().startswith("#"))


def whole(name: str) -> str:
    """Return a script with its parts."""
    text = resources.files("intop.hosts").joinpath(name).read_text()
    return _PART.sub(lambda part: whole(part["name"]), text)

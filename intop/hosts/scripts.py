"""The scripts that run on hosts: POSIX sh, in files beside the modules that send them.

A line `@NAME@` stands for the file with this name below this folder.
"""

import re
from functools import cache
from importlib import resources

from intop.hosts.answers import joined, lines

UNTRUSTED = 74
"""Exit code of `trusted.sh`: others can change a folder."""
_PART = re.compile(r"^@(?P<name>[a-z_/]+\.sh)@\n", re.MULTILINE)


@cache
def script(name: str) -> str:
    """Return a script with its parts, without comments: it is sent to hosts again and again."""
    return joined(line for line in lines(whole(name)) if not line.lstrip().startswith("#"))


def whole(name: str) -> str:
    """Return a script with its parts."""
    text = resources.files("intop.hosts").joinpath(name).read_text()
    return _PART.sub(lambda part: whole(part["name"]), text)

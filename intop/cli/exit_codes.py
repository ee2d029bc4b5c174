"""What the exit code of a command says beside success, a failure (1) and wrong use (2)."""

NO_GAIN = 3
"""It was measured, and there is no gain to deploy."""
LIMIT = 3
"""A soak was measured, and a limit was broken or a leak was found."""
DRIFT = 4
"""One of the hosts is not as it was applied."""
INTERRUPTED = 130
"""Stopped by a signal, as shells have it."""

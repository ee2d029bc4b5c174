"""The exit codes of commands beside success (0), a failure (1) and wrong use (2)."""

NO_GAIN = 3
"""A measurement without a gain to deploy."""
LIMIT = 3
"""A soak with a broken limit or a leak."""
DRIFT = 4
"""A host that is not as it was applied."""
INTERRUPTED = 130
"""Stopped by a signal, as in shells."""

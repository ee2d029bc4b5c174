"""Contest: published sets of values and the winner against the default."""

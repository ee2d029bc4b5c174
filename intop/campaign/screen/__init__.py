"""The screening: which parameters act."""

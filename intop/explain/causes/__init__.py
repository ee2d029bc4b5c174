"""Causes: what is left of a gain without each mechanism that the verdict names."""

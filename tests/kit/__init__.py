"""Real programs and hosts that several tests need, and servers that behave oddly."""

"""The stages of a campaign: one file each, listed in `intop.run.registry`."""

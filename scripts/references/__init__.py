"""Generators of reference pages: commands.md, parameters.md, nginx.md and trials.md in docs/."""

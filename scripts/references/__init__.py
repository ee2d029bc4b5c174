"""Generators of reference pages: docs/commands.md, docs/parameters.md and docs/trials.md."""

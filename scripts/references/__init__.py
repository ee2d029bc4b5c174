"""Generators of reference pages: docs/commands.md, docs/parameters.md, docs/nginx.md and docs/trials.md."""

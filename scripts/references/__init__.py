"""The documents that are made from the code: docs/commands.md and docs/parameters.md."""

"""configs/*.toml to domain types, every problem of a file at once, with its place."""

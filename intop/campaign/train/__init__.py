"""The surrogate models, tuned and fitted; foreign tables, too."""

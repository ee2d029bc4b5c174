"""The collection: configurations that fill the space, measured."""

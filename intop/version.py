"""The version of intop, which plans, trials and files are marked with."""

__version__ = "0.1.0"

"""intop tunes Linux kernel parameters for Nginx clusters and proves the result by measurement."""

__version__ = "0.1.0"

"""python -m intop."""

from intop.cli import main

main()

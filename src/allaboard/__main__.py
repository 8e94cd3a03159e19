"""`python -m allaboard` is the same as `allaboard`."""

from allaboard.cli import main

main()

"""`python -m fishweir`: the command line."""

from fishweir.cli import main

main()

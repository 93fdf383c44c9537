"""`python -m fishweir`: the command line."""

from fishweir.cli import app

app(prog_name="fishweir")

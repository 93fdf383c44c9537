"""Administration: list, pause, resume, replace, drop, and manage undelivered results."""

from __future__ import annotations

from typing import Annotated

import typer

from fishweir.cli.common import DEFAULT_HOME, Home, opened

Pattern = Annotated[str | None, typer.Argument(help="A name pattern such as 'x*', or a word in names or texts.")]
What = Annotated[str, typer.Argument(help="The name of a query, or the number of a subscription.")]
Name = Annotated[str, typer.Argument(help="The name of a query or feed.")]


def list_(
    pattern: Pattern = None,
    home: Home = DEFAULT_HOME,
    subscriptions: Annotated[bool, typer.Option("--subscriptions", "-s", help="List subscriptions.")] = False,
) -> None:
    """List queries, or subscriptions with their numbers."""
    with opened(home, must_exist=True) as weir:
        if subscriptions:
            for one in weir.subscriptions(pattern):
                typer.echo(f"{one.id}\t{one.feed}\t{one}")
        else:
            for query in weir.queries(pattern):
                typer.echo(f"{query.name}\t{query.state}\t{' '.join(query.text.split())}")


def pause(what: What, home: Home = DEFAULT_HOME) -> None:
    """Pause a query or a subscription."""
    with opened(home, must_exist=True) as weir:
        weir.pause(int(what) if what.isdecimal() else what)


def resume(what: What, home: Home = DEFAULT_HOME) -> None:
    """Resume a paused query or subscription."""
    with opened(home, must_exist=True) as weir:
        weir.resume(int(what) if what.isdecimal() else what)


def replace(
    statement: Annotated[str, typer.Argument(help="The new definition, with the name of the query.")],
    home: Home = DEFAULT_HOME,
    subscription: Annotated[
        int | None, typer.Option("--subscription", "-s", help="The number of the subscription to replace.")
    ] = None,
) -> None:
    """Replace the definition of a query, or a subscription. Earlier results are kept."""
    with opened(home, must_exist=True) as weir:
        typer.echo(weir.replace(statement, subscription))


def act(
    name: Name,
    clauses: Annotated[str, typer.Argument(help="For example: do http 'https://...' every 1 hour")],
    home: Home = DEFAULT_HOME,
) -> None:
    """Change what a query does with its results, and when."""
    with opened(home, must_exist=True) as weir:
        weir.act(name, clauses)


def drop(
    what: What,
    home: Home = DEFAULT_HOME,
    stream: Annotated[bool, typer.Option("--stream", help="Remove a declared stream instead of a query.")] = False,
) -> None:
    """Remove a query or a subscription, or a stream that no query reads."""
    with opened(home, must_exist=True) as weir:
        if stream:
            weir.drop_stream(what)
        else:
            weir.drop(int(what) if what.isdecimal() else what)


def letters(
    home: Home = DEFAULT_HOME,
    dead: Annotated[bool, typer.Option("--dead", help="List only deliveries that were given up.")] = False,
) -> None:
    """List undelivered results, with the reason."""
    with opened(home, must_exist=True) as weir:
        for letter in weir.dead_letters() if dead else weir.letters():
            typer.echo(str(letter))


def resend(
    ids: Annotated[list[int] | None, typer.Argument(help="Numbers of dead letters; all if omitted.")] = None,
    home: Home = DEFAULT_HOME,
) -> None:
    """Send dead letters again."""
    with opened(home, must_exist=True) as weir:
        typer.echo(f"{weir.resend(ids or None)} resent")


def unsubscribe(
    token: Annotated[str, typer.Argument(help="The last part of the unsubscribe link in a mail.")],
    home: Home = DEFAULT_HOME,
) -> None:
    """End the subscription that the unsubscribe link in a mail refers to."""
    with opened(home, must_exist=True) as weir:
        typer.echo("unsubscribed" if weir.unsubscribe(token) else "there is no such subscription")

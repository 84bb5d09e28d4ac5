"""`tachograph doctor`: what a ledger stands on, and what needs attention."""

from __future__ import annotations

import click
from click.core import ParameterSource

from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, json_option, print_json, table
from ledger.doctor import examine, needs_attention

ORIGINS = {
    ParameterSource.COMMANDLINE: "option --db",
    ParameterSource.ENVIRONMENT: "TACHOGRAPH_DB",
}


@click.command()
@db_option
@json_option
@command
async def doctor(db: str, as_json: bool) -> None:
    """Examine a ledger, its engine and its disk; exit code 1 if something needs attention."""
    source = click.get_current_context().get_parameter_source("db")
    facts = await examine(db, ORIGINS.get(source) if source is not None else None)
    if as_json:
        print_json({"needs_attention": needs_attention(facts), "facts": facts})
    else:
        rows = [
            [fact.name, f"{fact.value:,}" if isinstance(fact.value, int | float) else fact.value, fact.origin or ""]
            for fact in facts
        ]
        click.echo(table([["FACT", "VALUE", "ORIGIN"], *rows]))
        for fact in facts:
            if fact.advice is not None:
                click.echo(f"attention: {fact.name}: {fact.advice}")
        if not needs_attention(facts):
            click.echo("nothing needs attention")
    if needs_attention(facts):
        raise click.exceptions.Exit(EXIT_NOT_FOUND)

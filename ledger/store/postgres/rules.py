"""The rules of a ledger in a database, as the server writes them: `rules.txt` has them as migrations make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import asyncpg

READ_RULES = """
WITH here AS (SELECT current_schema()::text AS name, quote_ident(current_schema()) || '.' AS prefix),
ours AS (SELECT pg_class.oid, relname FROM pg_class, here WHERE relnamespace = to_regnamespace(quote_ident(here.name)))
SELECT 'trigger ' || relname || '.' || tgname,
    CASE tgenabled WHEN 'A' THEN '' ELSE 'not always: ' END || replace(pg_get_triggerdef(pg_trigger.oid), prefix, '')
FROM pg_trigger JOIN ours ON ours.oid = tgrelid, here WHERE NOT tgisinternal
UNION ALL
SELECT 'function ' || proname, md5(replace(prosrc, prefix, '')) || ' ' || coalesce(proconfig::text, '')
FROM pg_proc, here WHERE prorettype = 'trigger'::regtype AND pronamespace = to_regnamespace(quote_ident(here.name))
UNION ALL
SELECT 'index ' || relname, replace(pg_get_indexdef(indexrelid), prefix, '')
    || CASE WHEN indisvalid AND indisready THEN '' ELSE ' (not valid)' END
FROM pg_index JOIN ours ON ours.oid = indexrelid, here WHERE indisunique
UNION ALL
SELECT 'keys ' || relname, 'not enforced'
FROM pg_trigger JOIN ours ON ours.oid = tgrelid WHERE tgisinternal AND tgenabled = 'D' GROUP BY relname
"""
"""Each by kind and name, as it is written: triggers, their functions, unique indexes, and foreign keys that are off."""


@cache
def _forms() -> Mapping[str, Sequence[str]]:
    """Each rule as it is written: as migrations made it first, then as it is once a dump of it was restored."""
    forms: dict[str, list[str]] = {}
    text = (files("ledger.store.postgres") / "rules.txt").read_text("utf-8")
    for line in text.splitlines():
        rule, how = line.split("\t")
        forms.setdefault(rule, []).append(how)
    return forms


@cache
def rules_made() -> Mapping[str, str]:
    """What all migrations make of an empty schema."""
    return {rule: forms[0] for rule, forms in _forms().items()}


async def rules_of(connection: asyncpg.Connection[Any]) -> dict[str, str]:
    """What there is, as if migrations had made it just now; of what they did not make, only what is in the way."""
    rules = {str(rule): str(how) for rule, how in await connection.fetch(READ_RULES)}
    forms = _forms()
    in_the_way = tuple(f"trigger {name}." for name in {rule.split()[1].partition(".")[0] for rule in forms})
    return {
        rule: forms[rule][0] if how in forms.get(rule, ()) else how
        for rule, how in rules.items()
        if rule in forms or rule.startswith((*in_the_way, "keys "))
    }

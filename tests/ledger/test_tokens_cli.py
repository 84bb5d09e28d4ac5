"""`tachograph token`: what it prints, once, and what it refuses."""

import asyncio
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from ledger import Ledger
from tests.ledger import commands as cli


@pytest.fixture
def call(path):
    async def make():
        async with await Ledger.open(path):
            pass

    asyncio.run(make())

    def invoke(*args):
        return CliRunner().invoke(cli.token, [*args, "--db", str(path)])

    return invoke


def tokens(path, look):
    async def open_and_look():
        async with await Ledger.open(path) as ledger:
            return await look(ledger.tokens)

    return asyncio.run(open_and_look())


def test_a_token_is_printed_once_and_opens_what_it_says(call, path):
    made = call("create", "--owner", "ops-1", "--right", "read", "--right", "annotate", "--sessions", "team-a")
    assert made.exit_code == 0
    (bearer,) = made.stdout.splitlines()
    found = tokens(path, lambda all_of_them: all_of_them.by_bearer(bearer))
    assert (found.owner, found.rights, found.session_prefix) == ("ops-1", ("read", "annotate"), "team-a")
    listed = call("list").stdout
    assert found.token_id in listed
    assert bearer not in listed
    assert bearer.partition(".")[2] not in call("list", "--json").stdout


def test_tokens_are_listed_with_their_state_for_programs_too(call):
    assert "no tokens" in call("list").stdout
    made = json.loads(call("create", "--owner", "ops-1", "--right", "audit", "--expires-in", "30d", "--json").stdout)
    assert made["expires_us"] - made["created_us"] == 30 * 86_400 * 1_000_000
    assert call("revoke", made["token_id"], "--reason", "LOST").stdout == f"{made['token_id']} is revoked\n"
    assert call("revoke", made["token_id"]).stdout == f"{made['token_id']} was revoked\n"
    (listed,) = json.loads(call("list", "--json").stdout)
    assert (listed["state"], listed["rights"]) == ("revoked", ["audit"])


def test_a_link_signs_in_once(call, path):
    call("create", "--owner", "ops-1", "--right", "read")
    linked = call("link", "--owner", "ops-1", "--url", "https://runs.example/ledger/")
    address = urlsplit(linked.stdout.strip())
    assert (address.scheme, address.netloc, address.path) == ("https", "runs.example", "/ledger/login")
    (code,) = parse_qs(address.query)["code"]
    assert tokens(path, lambda all_of_them: all_of_them.enter(code)) is not None
    assert tokens(path, lambda all_of_them: all_of_them.enter(code)) is None


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["create", "--owner", "ops-1"], 2, "--right"),
        (["create", "--owner", "ops-1", "--right", "write"], 2, "write"),
        (["create", "--owner", "ops-1", "--right", "read", "--expires-in", "soon"], 2, "30d"),
        (["create", "--owner", "ops-1", "--right", "read", "--sessions", "a/b"], 2, "session_prefix"),
        (["revoke", "token-0"], 1, "there is no token token-0"),
        (["link", "--owner", "nobody"], 1, "there is no token nobody that can be used"),
        (["link"], 2, "--token-id or by --owner"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(call, args, code, said):
    result = call(*args)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr

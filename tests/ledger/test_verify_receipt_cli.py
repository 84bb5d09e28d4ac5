"""`tachograph verify-receipt`: a receipt is checked with public keys and nothing else."""

import asyncio

from click.testing import CliRunner

from ledger import LedgerReader
from ledger.audit.signing.keyring import default_key_path, public_keys
from ledger.audit.signing.receipts import receipt_now
from ledger.cli.verify_receipt import verify_receipt
from tests.audit.bundles import OTHER_KEY
from tests.viewer.audited import ORIGIN, record_audited


def test_a_receipt_holds_for_its_key_and_for_no_other_and_no_other_event(tmp_path):  # SPEC E9
    path = tmp_path / "runs.db"
    asyncio.run(record_audited(path))

    async def receipt() -> str:
        async with await LedgerReader.open(path) as reader:
            found = await receipt_now(reader, "s-1", "r-answered")
            assert found is not None
            return found.text()

    text = asyncio.run(receipt())
    keys, others, file, forged = (tmp_path / name for name in ("keys", "others", "proof", "forged"))
    keys.write_text("".join(f"{key}\n" for key in public_keys(default_key_path(path))))
    others.write_text(f"{OTHER_KEY.verifier}\n")
    file.write_text(text)
    index = int(text.split("\nindex ")[1].split("\n")[0])
    forged.write_text(text.replace(f"\nindex {index}\n", f"\nindex {index + 1}\n"))

    def check(*arguments: object) -> int:
        return CliRunner().invoke(verify_receipt, list(map(str, arguments))).exit_code

    assert check(file, "--key", keys, "--origin", ORIGIN) == 0
    assert check(file, "--key", keys, "--json") == 0
    assert check(file, "--key", others) == 1
    assert check(file, "--key", keys, "--origin", "log.example/other") == 1
    assert check(forged, "--key", keys) == 1

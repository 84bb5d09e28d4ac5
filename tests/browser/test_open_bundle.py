"""A bundle is looked at within the browser: nothing is sent, and what the command refuses never holds there."""

import pytest

from ledger.audit.bundle.errors import InvalidBundle
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.verifying import verify_bundle
from tests.audit.bundles import KEY, LOG, SIZE, changed_line, members_of, write_members, write_run

FOUND = ".found[data-state]:not([data-state=checking])"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("bundle") / "run.bundle", LOG, tree=LOG.signed_tree(SIZE, earlier=9))


def verdict(page, data: bytes, trusted: str = "") -> tuple[str, str]:
    """What the page's own modules find, as its verdict and its words."""
    script = """async ([bytes, trusted]) => {
        const { checkBundle } = await import("/static/js/bundle/check.js");
        const found = await checkBundle(new Blob([Uint8Array.from(bytes)]), trusted);
        return [found.verdict, found.finding ? found.finding.message : ""];
    }"""
    return tuple(page.evaluate(script, [list(data), trusted]))


def test_a_bundle_that_was_chosen_is_checked_and_nothing_is_sent(watch, bundle):
    watched = watch()
    page = watched.open("/audit/open")
    page.wait_for_selector(".bundle-form:not([hidden])")
    before = len(watched.requests)
    page.locator("textarea").evaluate("(area, key) => { area.value = key }", str(KEY.verifier))
    page.set_input_files("input[type=file]", bundle)
    page.wait_for_selector(FOUND)
    assert page.locator(".found").get_attribute("data-state") == "holds"
    assert "session-1/run-2" in page.locator(".found").inner_text()
    assert KEY.verifier.fingerprint in page.locator(".found").inner_text()
    assert len(watched.requests) == before


def test_a_changed_byte_is_found_in_every_member(watch, bundle, tmp_path):
    page = watch().open("/audit/open")
    data = bundle.read_bytes()
    with bundle.open("rb") as file:
        entries = Archive(file).entries
    places = [entry.data_offset + entry.packed_bytes // 2 for entry in entries.values()]
    places += [entry.offset + 4 for entry in entries.values()] + [len(data) - 10, len(data) - 60]
    for place in places:
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        file = tmp_path / f"{place}.bundle"
        file.write_bytes(changed)
        try:
            is_right = verify_bundle(file).is_right
        except InvalidBundle:
            is_right = False
        found, words = verdict(page, changed)
        assert (found == "holds") == is_right, (place, words)
        assert not {*"{}"} & {*words}


@pytest.mark.parametrize(
    ("name", "line", "old", "new", "problem"),
    [
        ("events.txt", 2, b" 3 ", b" 4 ", "sequence_gap"),
        ("events.txt", 1, b"run-2", b"run-3", "link_broken"),
        ("contents.jsonl", 0, b'"size_bytes":', b'"size_bytes":1', "content_differs"),
        ("checkpoint.txt", 1, b"", b"1", "not_signed"),
    ],
)
def test_what_a_forger_makes_fit_is_found_as_by_the_command(  # SPEC E9
    watch, bundle, tmp_path, name, line, old, new, problem
):
    forged = write_members(tmp_path / "forged", changed_line(name, line, old, new)(members_of(bundle)))
    report = verify_bundle(forged)
    assert report.finding is not None
    assert report.finding.problem == problem
    found, words = verdict(watch().open("/audit/open"), forged.read_bytes())
    assert found == "wrong"
    assert words.endswith(f" ({problem})")
    assert not {*"{}"} & {*words}


def test_another_key_than_the_trusted_one_vouches_for_nothing(watch, bundle):
    page = watch().open("/audit/open")
    assert verdict(page, bundle.read_bytes())[0] == "holds"
    stranger = "log.example/other+" + "0" * 8 + "+AAAA"
    assert verdict(page, bundle.read_bytes(), stranger)[0] == "wrong"


def test_without_javascript_the_page_says_which_command_does_the_same(watch):
    page = watch(java_script_enabled=False).open("/audit/open")
    assert "tachograph verify-bundle" in page.locator("main").inner_text()
    assert page.locator(".without").is_visible()

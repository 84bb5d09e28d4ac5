"""What may be found of a bundle that is opened in the browser: sentences that its scripts name, in the page's language.

With those that are not of the bundle as a whole the place is told, and the code that `tachograph verify-bundle` gives.
"""

import re
from collections.abc import Mapping

import orjson

from viewer.words import N_, found

PLACES: Mapping[str, str] = {
    "event": N_("event %(number)s"),
    "content": N_("content %(digest)s"),
    "trusted_keys": N_("the keys that you trust"),
}
NO_BUNDLE: Mapping[str, str] = {
    "too_small": N_("the bundle has %(size)s bytes, which no bundle has"),
    "too_large": N_("the bundle is larger than what this page opens: check it with the command"),
    "unpacks_too_large": N_("the bundle unpacks to more than what this page opens: check it with the command"),
    "no_zip": N_("the bundle is no zip that ends as bundles do"),
    "before_directory": N_("the bundle has something between its members and its directory"),
    "directory_long": N_("the bundle has more in its directory than it says"),
    "directory_short": N_("the bundle has a directory that ends in the midst of an entry"),
    "strange_member": N_("the bundle has a member with a name or a packing that no member has"),
    "entry_otherwise": N_("the bundle has an entry for %(name)s that is not written as bundles' are"),
    "two_of_a_name": N_("the bundle has two members named %(name)s"),
    "before_member": N_("the bundle has something before %(name)s, or has it within another member"),
    "packed_too_small": N_("the bundle has %(name)s packed %(ratio)s times smaller or more"),
    "two_sizes": N_("the bundle has %(name)s stored as it is, with two sizes"),
    "member_too_large": N_("the bundle has %(size)s bytes in %(name)s, and %(limit)s is the limit"),
    "headers_differ": N_("the bundle has two headers of %(name)s that differ"),
    "member_short": N_("the bundle has less in %(name)s than its directory says"),
    "member_long": N_("the bundle has more in %(name)s than its directory says"),
    "line_without_end": N_("the bundle has a last line in %(name)s that does not end"),
    "line_too_long": N_("the bundle has a line of more than %(limit)s bytes in %(name)s"),
    "foreign_manifest": N_("the bundle has a manifest that is not that of a tachograph-bundle"),
    "unknown_version": N_("the bundle is of a version that this page does not know; it knows 1"),
    "of_a_period": N_("the bundle is of a period; this page opens those of one run: check it with the command"),
    "manifest_otherwise": N_("the bundle has a manifest that is not written as manifests are"),
}
OF_MEMBERS: Mapping[str, str] = {
    "no_such_member": N_("there is no such member"),
    "other_members": N_("a member is missing, or there is one that no such bundle has"),
    "another_size": N_("it has another size than the manifest says"),
    "another_hash": N_("its SHA-256 is not the one in the manifest"),
    "packed_otherwise": N_("its bytes are not those that were packed"),
    "not_unpacked": N_("it cannot be unpacked (%(why)s)"),
}
OF_NOTES: Mapping[str, str] = {
    "number_of_keys": N_("there must be 1 to %(most)s keys"),
    "key_of_no_kind": N_("a key is no Ed25519 key"),
    "key_of_another_id": N_("a key bears another id than it says"),
    "no_note": N_("it is no note: it is too large, or has what no note has"),
    "note_without_signatures": N_("the note has no signatures below an empty line"),
    "note_too_signed": N_("the note has too many signatures"),
    "note_with_a_line": N_("the note has a line below it that is no signature"),
    "note_signed_twice": N_("the note is signed twice by %(name)s"),
    "note_signed_wrongly": N_("the note bears a signature of %(name)s that is wrong"),
    "note_signed_by_none": N_("the note is signed by none of the keys"),
    "note_too_short": N_("the note has fewer than three lines"),
    "note_without_root": N_("the note has no size, or no root"),
    "another_checkpoint": N_("it is not of the log, or not of the size, that the manifest says"),
    "nothing_signed": N_("the bundle has no checkpoint, so nobody vouches for its events"),
}
OF_EVENTS: Mapping[str, str] = {
    "another_count": N_("there are %(count)s events, and the manifest says otherwise"),
    "fewer_than_in_log": N_("there are fewer events than are said to be in the log"),
    "no_event_line": N_("its line is not that of an event"),
    "another_number": N_("its number is said to be %(seq)s"),
    "link_not_following": N_("its link does not follow from its body, its time and the event before"),
    "body_otherwise": N_("its body is not written as events are"),
    "of_another_run": N_("it is of another run or session"),
    "before_checkpoint": N_("it is before the checkpoint, and said not to be"),
    "not_before_checkpoint": N_("it is said to be before the checkpoint, and has no such place"),
    "hashes_left": N_("there are more hashes than places between the events"),
    "hashes_short": N_("the hashes of what lies between end before %(size)s"),
    "size_not_reached": N_("its size is not reached"),
    "another_root": N_("its root is not that of the events"),
    "place_passed": N_("%(size)s is before %(reached)s, which was reached already"),
}
OF_CONTENTS: Mapping[str, str] = {
    "content_not_named": N_("no event names it, or it is named twice or out of order"),
    "content_not_indexed": N_("events name it, and the index does not"),
    "contents_left": N_("there are contents that the index does not have as stored"),
    "index_otherwise": N_("a line is not written as this index is"),
    "said_to_be_stored": N_("an event says that it is stored, and it is not"),
    "salt_otherwise": N_("it has a salt and should not, or has none and should"),
    "withheld_otherwise": N_("the manifest says otherwise of whether contents are withheld"),
    "erased_otherwise": N_("not as many contents are erased as the events say"),
    "erased_in_part": N_("that it was erased is said in part only"),
    "erased_by_no_event": N_("it is said to be erased, and no event says so"),
    "another_digest": N_("it is not what its digest is of"),
}
SENTENCES = {**PLACES, **NO_BUNDLE, **OF_MEMBERS, **OF_NOTES, **OF_EVENTS, **OF_CONTENTS}


def for_scripts() -> str:
    """All of them as JSON, with `{name}` where a fact belongs, as scripts fill it in."""
    filled_in = {name: re.sub(r"%\((\w+)\)s", r"{\1}", found(sentence)) for name, sentence in SENTENCES.items()}
    return orjson.dumps(filled_in).decode()

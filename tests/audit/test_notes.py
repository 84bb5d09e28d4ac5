"""Notes are those of C2SP, as others sign and read them, and what is none is refused by a named error (SPEC E9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.errors import BadSignature, InvalidKey, InvalidNote, NotSigned
from ledger.audit.notes.notes import (
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    SigningKey,
    VerifierKey,
    open_note,
    sign_note,
    split_note,
)

# The examples of the Go checksum database's own implementation, and of the C2SP documents.
PETER_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_LINE = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
NOTE = f"{TEXT}\n{PETER_LINE}"
EXAMPLE = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE_NOTE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)

KEYS = [VerifierKey.parse(PETER)]
OURS = SigningKey("log.example/1", bytes(range(32)))


def test_a_note_that_others_signed_is_opened():
    assert open_note(NOTE, KEYS) == TEXT
    assert open_note(NOTE + ENOCH_LINE, [VerifierKey.parse(ENOCH)]) == TEXT
    assert open_note(NOTE + ENOCH_LINE, [*KEYS, VerifierKey.parse(ENOCH)]) == TEXT
    assert open_note(EXAMPLE_NOTE, [VerifierKey.parse(EXAMPLE)]) == "This is an example message.\n"


def test_a_note_is_signed_byte_for_byte_as_others_sign_it():
    key = SigningKey.parse(PETER_SECRET)
    assert str(key.verifier) == PETER
    assert key.secret() == PETER_SECRET
    assert sign_note(TEXT, key) == NOTE


def test_text_may_have_empty_lines_and_look_like_a_note():
    text = f"A note within a note:\n\n{NOTE}"
    assert open_note(sign_note(text, OURS), [OURS.verifier]) == text


def test_signatures_of_unknown_keys_are_passed_over():
    assert open_note(NOTE + "— somebody AAAAAAAA\n", KEYS) == TEXT
    same_name = "— PeterNeumann AAAAAAAA\n"
    same_id = f"— Other {PETER_LINE.split()[2]}\n"
    assert open_note(NOTE + same_name + same_id, KEYS) == TEXT
    for line in (same_name, same_id, ENOCH_LINE):
        with pytest.raises(NotSigned):
            open_note(f"{TEXT}\n{line}", KEYS)
    with pytest.raises(NotSigned):
        open_note(NOTE, [])


def test_a_note_of_which_anything_was_changed_is_not_opened():
    for at, character in enumerate(NOTE):
        changed = NOTE[:at] + ("x" if character != "x" else "y") + NOTE[at + 1 :]
        with pytest.raises(InvalidNote):
            open_note(changed, KEYS)
        with pytest.raises(InvalidNote):
            open_note(NOTE[:at], KEYS)
    with pytest.raises(BadSignature) as caught:
        open_note(NOTE.replace("answer", "problem"), KEYS)
    assert caught.value.key_name == "PeterNeumann"


def test_one_bad_signature_of_a_trusted_key_is_enough_to_refuse():
    bad = ENOCH_LINE.replace("BzmZ", "BzmY")
    with pytest.raises(BadSignature):
        open_note(NOTE + bad, [*KEYS, VerifierKey.parse(ENOCH)])


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        TEXT,
        f"{TEXT}{PETER_LINE}",
        f"{TEXT}\n{PETER_LINE}"[:-1],
        f"{TEXT}\n{PETER_LINE}\n",
        f"{TEXT}\n{PETER_LINE}{PETER_LINE}",
        f"{TEXT}\n{PETER_LINE}and more\n",
        f"{TEXT}\n- PeterNeumann x08go/Zk\n",
        f"{TEXT}\n—  x08go/Zk\n",
        f"{TEXT}\n— PeterNeumann\n",
        f"{TEXT}\n— Peter+Neumann x08go/Zk\n",
        f"{TEXT}\n— Peter\u2003Neumann x08go/Zk\n",
        f"{TEXT}\n— PeterNeumann x08g\n",
        f"{TEXT}\n— PeterNeumann x08go_Zk\n",
        f"{TEXT}\n— PeterNeumann x08go/Z\n",
        f"{TEXT}\n— PeterNeumann x08go/Zk=\n",
        f"{TEXT}\n— PeterNeumann x08go/Z=\n",
        f"{TEXT}\n— {'n' * 257} x08go/Zk\n",
        f"{TEXT}\t\n{PETER_LINE}",
        f"{TEXT}\0\n{PETER_LINE}",
        f"{TEXT}\r\n\n{PETER_LINE}",
        f"{TEXT}\ud800\n\n{PETER_LINE}",
        f"{TEXT}\n" + PETER_LINE + "— n AAAAAAAA\n" * MAX_SIGNATURES,
        f"{'x' * MAX_NOTE_BYTES}\n\n{PETER_LINE}",
        f"{'é' * (MAX_NOTE_BYTES // 2)}\n\n{PETER_LINE}",
    ],
)
def test_what_is_no_note_is_refused_by_name(note):
    with pytest.raises(InvalidNote) as caught:
        open_note(note, KEYS)
    assert caught.value.code == "invalid_note"


def test_sixteen_large_signatures_are_accepted():
    lines = "".join(f"— witness{at}.example {'AAAA' * 2000}\n" for at in range(16))
    assert open_note(NOTE + lines, KEYS) == TEXT
    assert len(split_note(NOTE + lines)[1]) == 17


@pytest.mark.parametrize("text", ["no newline", "", "tab\t\n", "\ud800\n"])
def test_only_what_can_be_opened_is_signed(text):
    with pytest.raises(InvalidNote):
        sign_note(text, OURS)
    with pytest.raises(InvalidNote):
        sign_note("text\n")


def test_no_part_and_no_change_of_a_key_passes_for_a_key():
    for whole, parse in ((PETER, VerifierKey.parse), (PETER_SECRET, SigningKey.parse)):
        for begin in range(len(whole)):
            for end in range(begin, len(whole)):
                with pytest.raises(InvalidKey):
                    parse(whole[begin:end] if begin or end < len(whole) else "")
        for at, character in enumerate(whole):
            with pytest.raises(InvalidKey):
                parse(whole[:at] + chr(ord(character) + 1) + whole[at + 1 :])
    for text in (
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ):
        with pytest.raises(InvalidKey):
            VerifierKey.parse(text)


def test_an_error_about_a_key_and_a_printed_key_never_show_the_secret():
    secret = PETER_SECRET.rsplit("+", 1)[1]
    with pytest.raises(InvalidKey) as caught:
        SigningKey.parse(PETER_SECRET[:-1])
    assert secret[:10] not in str(caught.value)
    key = SigningKey.parse(PETER_SECRET)
    assert secret not in repr(key) + str(key)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "n" * 257, "\ud800"])
def test_a_key_has_a_name_that_a_line_can_begin_with(name):
    with pytest.raises(InvalidKey):
        SigningKey(name, bytes(32))
    with pytest.raises(InvalidKey):
        SigningKey("name", bytes(31))
    with pytest.raises(InvalidKey):
        VerifierKey("name", bytes(33))


lines = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=50)


@given(st.lists(lines, min_size=1), st.binary(min_size=32, max_size=32))
def test_any_text_of_lines_comes_back_as_it_was_signed(parts, seed):
    key = SigningKey("k", seed)
    text = "".join(f"{part}\n" for part in parts)
    assert open_note(sign_note(text, key), [key.verifier]) == text
    assert SigningKey.parse(key.secret()).verifier == key.verifier == VerifierKey.parse(str(key.verifier))


@given(st.text())
def test_no_text_whatever_is_opened_or_raises_anything_else(text):
    for part in (text, f"{text}\n\n{PETER_LINE}", f"{TEXT}\n{text}", f"{TEXT}\n— PeterNeumann {text}\n"):
        with pytest.raises(InvalidNote):
            open_note(part, KEYS)
    with pytest.raises(InvalidKey):
        VerifierKey.parse(text)

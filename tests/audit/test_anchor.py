"""The anchor file: every checkpoint once, in order, whatever was cut off in between (SPEC E9)."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.errors import AnchorError
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing import anchor as anchors
from ledger.audit.signing.anchor import Anchor, notes_in

KEY = SigningKey("log.example/1", bytes(range(32)))
OTHER = SigningKey("log.example/2", bytes(32))


def checkpoint(size, key=KEY):
    return Checkpoint(key.name, size, bytes([size % 256]) * 32).sign(key)


@pytest.fixture
def anchor(tmp_path):
    return Anchor(tmp_path / "anchor")


def test_checkpoints_come_back_in_the_order_in_which_they_were_appended(anchor):
    assert anchor.latest(KEY.name) is None
    signed = [checkpoint(size) for size in (1, 2, 300)]
    for one in signed:
        anchor.append(one)
    assert list(anchor.notes()) == signed
    assert anchor.latest(KEY.name) == signed[-1].claim
    assert anchor.path.read_text() == "\n".join(one.note for one in signed) + "\n"


def test_the_latest_is_that_of_the_log_in_question_and_the_largest(anchor):
    for one in (checkpoint(9), checkpoint(7), checkpoint(30, OTHER)):
        anchor.append(one)
    assert anchor.latest(KEY.name).size == 9
    assert anchor.latest(OTHER.name).size == 30
    assert anchor.latest("log.example/3") is None


def test_a_write_that_was_cut_anywhere_harms_neither_what_was_before_nor_what_comes(anchor):
    first, cut, last = checkpoint(1), checkpoint(2), checkpoint(3)
    whole = f"{cut.note}\n".encode()
    for at in range(len(whole)):
        anchor.path.write_bytes(f"{first.note}\n".encode() + whole[:at])
        assert list(anchor.notes()) in ([first], [first, cut])
        anchor.append(last)
        assert list(anchor.notes()) in ([first, last], [first, cut, last])
        assert anchor.latest(KEY.name) == last.claim


def test_a_file_of_any_length_is_read_in_pieces_and_its_end_alone_for_the_latest(anchor, monkeypatch):
    signed = [checkpoint(size) for size in range(1, 200)]
    anchor.path.write_text("".join(f"{one.note}\n" for one in signed))
    for piece_bytes in (1, 7, 200, 1_000):
        monkeypatch.setattr(anchors, "PIECE_BYTES", piece_bytes)
        assert list(anchor.notes()) == signed
    for tail_bytes in range(300, 700, 13):
        monkeypatch.setattr(anchors, "TAILS_BYTES", (tail_bytes,))
        assert anchor.latest(KEY.name) == signed[-1].claim


def test_the_latest_is_found_behind_many_of_another_log(anchor):
    anchor.append(checkpoint(7))
    anchor.append(checkpoint(8, OTHER))
    for size in range(9, 120):
        anchor.append(checkpoint(size, OTHER))
    assert anchor.latest(KEY.name).size == 7


def test_many_may_append_at_once(anchor):
    signed = [checkpoint(size) for size in range(1, 65)]
    barrier = threading.Barrier(len(signed))

    def append(one):
        barrier.wait()
        anchor.append(one)

    threads = [threading.Thread(target=append, args=(one,)) for one in signed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(anchor.notes(), key=lambda one: one.claim.size) == signed


def test_what_cannot_be_written_or_read_is_said_by_name(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (folder, tmp_path / "none" / "anchor"):
        with pytest.raises(AnchorError, match="cannot be added to"):
            Anchor(path).append(checkpoint(1))
    with pytest.raises(AnchorError, match="cannot be read"):
        Anchor(folder).latest(KEY.name)
    with pytest.raises(AnchorError, match="cannot be read"):
        list(Anchor(tmp_path / "none").notes())


@given(st.text(st.sampled_from("— \nab\0\ud800é="), max_size=60))
def test_anything_else_in_it_is_passed_over(text):
    note = checkpoint(5).note
    found = [one.note for one in notes_in(f"{text}\n\n{note}\n{text}")]
    assert note in found

"""The journal of the spike: what was appended is found again, in order, and nothing else."""

from __future__ import annotations

from pathlib import Path

from bench import spike_kills
from bench.journal import HEAD, Journal, Record
from bench.journal_server import Tables
from bench.spike_process import SIZE, Spike

SMALL = 4096


def made(*numbers: int) -> list[Record]:
    return [(number, b"%d " % number * 50) for number in numbers]


def test_records_are_found_after_the_last_one_that_was_applied(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SMALL)
    journal.append(made(1, 2))
    journal.append(made(3))
    assert Journal(tmp_path, SMALL).after(1) == made(2, 3)
    assert Journal(tmp_path, SMALL).after(3) == []


def test_a_record_that_is_not_whole_ends_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SMALL)
    journal.append(made(1, 2, 3))
    path = tmp_path / "journal.0"
    data = bytearray(path.read_bytes())
    data[2 * (HEAD.size + len(made(1)[0][1])) + HEAD.size] ^= 1  # the first byte of the third
    path.write_bytes(data)
    assert Journal(tmp_path, SMALL).after(0) == made(1, 2)


def test_a_file_is_written_over_when_it_was_released_and_what_is_left_in_it_is_not_found(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path, SMALL)
    for number in range(1, 101):
        journal.append(made(number))
        if journal.left_behind is not None:
            journal.release()
    found = Journal(tmp_path, SMALL).after(90)
    assert found == made(*range(91, 101))


def test_a_replay_applies_each_record_once_and_the_invariants_hold(tmp_path: Path) -> None:
    spike = Spike(tmp_path)
    journal = Journal(Path(spike.home.path), SIZE)
    journal.append(spike.records(1, 30))
    tables = Tables(spike.home)
    tables.apply(spike.records(1, 10))
    assert tables.recover(journal) == 20
    assert tables.recover(journal) == 0
    tables.connection.close()
    assert len(spike.texts()) == 30
    spike.check()


def test_a_kill_loses_nothing_that_was_answered_and_doubles_nothing(tmp_path: Path) -> None:
    said = spike_kills.kills(Spike(tmp_path, spike_kills.SIZE), times=2)
    assert "0 lost, 0 doubled" in said

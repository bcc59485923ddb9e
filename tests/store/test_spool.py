from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import closing

import pytest

from svc.store import Job, Jobs, Spool, SpoolLost, StorageError, new_id
from svc.store import spool as spools
from svc.store.database import Database
from svc.store.errors import WriteTimedOut
from tests.full_disk import largest_file

JOB = "job_a"
TEXT = "The secret state of a row."


@pytest.fixture
def spool(database, path):
    return Spool(database, path, "master")


def rows_of(count, text=TEXT):
    return [f'{{"id":"{n}","state":"{text}"}}' for n in range(1, count + 1)]


def write(spool, rows, job=JOB):
    with spool.writing(job, '{"questions":{}}', rows):
        pass


def read(spool, wanted=lambda numbers: True):
    found = {}
    with closing(spool.opened(JOB)) as file:
        while block := file.rows(wanted):
            first, texts = block
            found.update(enumerate(texts, first))
    return file, found


def test_rows_are_read_in_order_a_block_at_a_time(spool):
    rows = rows_of(500, "x" * 2_000)
    write(spool, rows)
    file, found = read(spool)
    assert file.request == '{"questions":{}}'
    assert [found[n] for n in range(1, 501)] == rows
    assert file.read_to == 500
    wanted = []
    _, found = read(spool, lambda numbers: wanted.append(numbers) or 500 in numbers)
    assert len(wanted) > 3 and set(found) == set(wanted[-1])


def test_nothing_of_it_can_be_read_and_only_its_owner_may_open_it(spool):
    write(spool, rows_of(5))
    path = spool.folder / JOB
    assert b"secret" not in path.read_bytes() and b"questions" not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert spool.folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_was_there_before_becomes_its_owners_alone(spool):
    spool.folder.mkdir(mode=0o777)
    spool.folder.chmod(0o777)
    write(spool, rows_of(1))
    assert spool.folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_behind_a_link_is_refused(spool, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    spool.folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="not a directory"):
        write(spool, rows_of(1))
    with pytest.raises(StorageError, match="Not a directory"), spool.running():
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "damaged"),
        (lambda data: data[:-200] + bytes([data[-200] ^ 1]) + data[-199:], "damaged"),
        (lambda data: data[:20], "damaged"),
        (lambda data: data[:5], "cut short"),
    ],
)
def test_a_file_that_was_changed_is_refused(spool, change, words):
    write(spool, rows_of(5))
    path = spool.folder / JOB
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SpoolLost, match=words):
        read(spool)


def test_a_block_of_another_job_is_refused(spool):
    write(spool, rows_of(5))
    write(spool, rows_of(5), "job_b")
    (spool.folder / JOB).write_bytes((spool.folder / "job_b").read_bytes())
    with pytest.raises(SpoolLost, match="damaged"):
        spool.opened(JOB)


def test_blocks_of_a_file_cannot_change_places(spool):
    write(spool, rows_of(400, "x" * 2_000))
    path = spool.folder / JOB
    data, blocks, at = path.read_bytes(), [], 0
    while at < len(data):
        first, count, size = spools._HEAD.unpack(data[at : at + 12])
        blocks.append((first, count, data[at + 12 : at + 12 + size]))
        at += 12 + size
    (first, count, one), (_, _, other) = blocks[1], blocks[2]
    moved = spools._HEAD.pack(first, count, len(other)) + other
    head = data[: len(data) - sum(12 + len(token) for *_, token in blocks[1:])]
    path.write_bytes(head + moved)
    assert one != other
    with pytest.raises(SpoolLost, match="damaged"):
        read(spool)


def test_another_master_key_opens_nothing(spool, database, path):
    write(spool, rows_of(5))
    with pytest.raises(SpoolLost, match="another master key"):
        Spool(database, path, "other").opened(JOB)
    with pytest.raises(SpoolLost, match="no master key"):
        Spool(database, path, None).opened(JOB)


def test_a_file_that_is_gone_is_said_to_be(spool):
    write(spool, rows_of(5))
    spool.delete(JOB)
    spool.delete(JOB)
    with pytest.raises(SpoolLost, match="gone"):
        spool.opened(JOB)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_writes_files_for_the_user_of_the_server(spool, path):
    write(spool, rows_of(5))
    for one in (path, spool.folder, spool.folder / JOB):
        os.chown(one, 12_345, 12_345)
    spool.replace(JOB, lambda number, text: "{}" if number == 2 else text)
    found = (spool.folder / JOB).stat()
    assert (found.st_uid, found.st_gid) == (12_345, 12_345)
    _, rows = read(spool)
    assert rows[2] == "{}" and rows[3] == rows_of(5)[2]
    os.chown(spool.folder, 12_346, -1)
    with pytest.raises(StorageError, match="cannot be written"):
        spool.replace(JOB, lambda _, text: text)


def test_a_full_disk_leaves_no_file(spool):
    write(spool, rows_of(1), "job_b")
    with (
        largest_file(100_000),
        pytest.raises(StorageError, match="could not be written beside the database"),
    ):
        write(spool, rows_of(2_000, "x" * 1_000))
    assert [path.name for path in spool.files()] == ["job_b"]


def test_a_file_system_that_fails_at_the_end_leaves_no_file(spool):
    def rows():
        yield from rows_of(3)
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(StorageError, match="no space left"):
        write(spool, rows())
    assert spool.files() == []


def test_an_exception_before_the_job_is_stored_deletes_the_file(spool):
    with pytest.raises(RuntimeError), spool.writing(JOB, "{}", rows_of(1)):
        assert (spool.folder / JOB).exists()
        raise RuntimeError
    assert not (spool.folder / JOB).exists()


def test_a_job_that_may_still_be_stored_keeps_its_file(spool):
    with pytest.raises(WriteTimedOut), spool.writing(JOB, "{}", rows_of(3)):
        raise WriteTimedOut("the writer was busy")
    assert read(spool)[1] == dict(enumerate(rows_of(3), 1))


def test_what_is_no_file_hinders_no_sweep(spool):
    write(spool, rows_of(3))
    (spool.folder / "job_0").mkdir()
    spool.sweep(lambda job: False)
    assert [path.name for path in spool.files()] == ["job_0"]


def test_what_has_no_job_is_swept_but_never_what_is_being_written(spool, database, path):
    write(spool, rows_of(1), "job_kept")
    write(spool, rows_of(1), "job_orphan")
    other = Spool(database, path, "master")
    with spool.writing("job_new", "{}", rows_of(1)):
        other.sweep(lambda job: job == "job_kept")
        assert (spool.folder / "job_new").exists()
    assert {one.name for one in spool.files()} == {"job_kept", "job_new"}
    # Its job came into the database between the first look and the lock.
    answers = iter([False, True])
    other.sweep(lambda job: job == "job_kept" or next(answers))
    assert (spool.folder / "job_new").exists()


def test_another_database_in_the_same_place_sweeps_nothing_of_the_one_before(
    spool, database, path, tmp_path
):
    write(spool, rows_of(3))
    spool.book(JOB).mkdir()
    with closing(Database.open(tmp_path / "other.db")) as other:
        wrong = Spool(other, path, "master")
        wrong.sweep(lambda _: False)
        assert (wrong.books(), spool.books()) == ([], [JOB])
        write(wrong, rows_of(1), "job_new")
        wrong.sweep(lambda _: False)
    assert [one.name for one in sorted(spool.files())] == [JOB, "job_new"]
    spool.sweep(lambda job_id: job_id == JOB)
    assert [one.name for one in spool.files()] == [JOB]


def test_a_writer_that_was_killed_leaves_what_can_be_swept(spool, path):
    program = (
        "import os, signal, sys\n"
        "from svc.store import Database, Spool\n"
        "spool = Spool(Database.open(sys.argv[1]), sys.argv[1], 'master')\n"
        "with spool.writing('job_killed', '{}', ['{}']):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert (spool.folder / "job_killed").exists()
    spool.sweep(lambda job: False)
    assert spool.files() == []


def test_one_process_runs_the_jobs_of_a_database(spool, database, path):
    other = Spool(database, path, "master")
    with spool.running() as first, other.running() as second:
        assert (first, second) == (True, False)
    with other.running() as first:
        assert first


def test_a_link_to_the_database_leads_to_the_same_files(spool, database, path, tmp_path):
    (tmp_path / "link").mkdir()
    link = tmp_path / "link" / "svc.db"
    link.symlink_to(path)
    other = Spool(database, link, "master")
    write(spool, rows_of(1))
    assert read(other)[1] == read(spool)[1]
    with spool.running() as first, other.running() as second:
        assert (first, second) == (True, False)


def left_beside_a_link(spool, path, tmp_path):
    """A link to the database, and the folder with a job that an older version made beside it."""
    write(spool, rows_of(1))
    (tmp_path / "link").mkdir()
    link, before = tmp_path / "link" / "svc.db", tmp_path / "link" / "svc.db.spool"
    link.symlink_to(path)
    spool.folder.rename(before)
    return link, before


@pytest.mark.parametrize("ours", [True, False])
def test_a_folder_that_an_older_version_made_beside_a_link_is_taken_over(
    spool, database, path, tmp_path, ours
):
    """But not that of another database, which the link may have led to."""
    link, before = left_beside_a_link(spool, path, tmp_path)
    if not ours:
        (before / "database").write_text("of another")
    assert [one.name for one in Spool(database, link, "master").files()] == [JOB] * ours
    assert before.exists() is not ours


@pytest.mark.parametrize("way", ["a relative path", "a linked folder"])
def test_a_folder_is_found_again_by_whichever_path_leads_to_it(
    spool, database, path, tmp_path, monkeypatch, way
):
    write(spool, rows_of(1))
    (tmp_path / "linked").symlink_to(path.parent)
    monkeypatch.chdir(path.parent)
    named = path.name if way == "a relative path" else tmp_path / "linked" / path.name
    assert [one.name for one in Spool(database, named, "master").files()] == [JOB]


@pytest.mark.parametrize("there", ["a folder", "a link to nowhere"])
def test_a_folder_that_cannot_be_taken_over_stops_the_start_while_it_has_jobs(
    spool, database, path, tmp_path, there
):
    """As where the database is on another disk than the link to it."""
    link, before = left_beside_a_link(spool, path, tmp_path)
    if there == "a folder":
        spool.folder.mkdir()
    else:
        spool.folder.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match=r"the rows of jobs lie in .* and belong in .* move all"):
        Spool(database, link, "master")
    # Locks that are left are no reason.
    (before / JOB).unlink()
    Spool(database, link, "master")


def test_a_folder_is_named_with_the_next_job_where_the_disk_was_full_before(
    spool, database, path, tmp_path
):
    write(spool, rows_of(1), "job_1")
    owner = spool.folder / "database"
    name = owner.read_text()
    owner.write_text("")
    write(spool, rows_of(1), "job_2")
    assert owner.read_text() == name


def test_a_database_that_came_to_a_folder_of_another_has_what_its_own_jobs_left_there(
    spool, database, path, tmp_path
):
    write(spool, rows_of(3))
    with closing(Database.open(tmp_path / "other.db")) as other:
        late, jobs = Spool(other, path, "master"), Jobs(other)
        job = Job(id=new_id(), project="default", api_key=None, created_at=1, expires_at=2, rows=3)
        write(late, rows_of(1), job.id)
        jobs.add(job)
        late.book(JOB).mkdir()
        late.book(job.id).mkdir()
        late.put_book_aside(job.id)
        assert [one.name for one in late.files()] == [job.id]
        assert late.books() == late.books_aside() and len(late.books()) == 1
        late.sweep(lambda _: False)
    assert [one.name for one in spool.files()] == [JOB]


def test_a_folder_in_which_nothing_is_left_of_another_database_becomes_ones_own(
    spool, database, path, tmp_path
):
    write(spool, rows_of(3))
    spool.delete(JOB)
    with closing(Database.open(tmp_path / "other.db")) as other:
        late = Spool(other, path, "master")
        write(late, rows_of(1), "job_new")
        assert [one.name for one in late.files()] == ["job_new"]
        late.sweep(lambda _: False)
        assert late.files() == []

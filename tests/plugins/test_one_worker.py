"""Which tests go to the same worker."""

from pathlib import Path

import pytest

from tests.plugins.one_worker import LONG, SEED_WORKERS, SEEDS, SHARED, TOGETHER, OneWorker, file_scope, scope

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", sorted(SHARED))
def test_tests_that_look_at_one_long_run_share_a_worker_and_their_file_is_there(file):
    assert (ROOT / file).is_file()
    assert scope(f"{file}::test_a[x]") == scope(f"{file}::test_b") == file


@pytest.mark.parametrize("path", LONG)
def test_what_takes_long_is_there_and_starts_first(path):
    assert (ROOT / path).exists()


def test_the_seeds_are_played_by_two_workers_while_the_others_do_the_rest():
    assert len({scope(f"{SEEDS}::test_seeds[{first}]") for first in range(1, 41, 2)}) == SEED_WORKERS


class Name(str):
    """Counts how often one is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_the_place_of_a_test_is_looked_up_and_not_searched_for_in_a_list_of_thousands() -> None:
    scheduler, worker = OneWorker.__new__(OneWorker), object()
    scheduler.numnodes, scheduler.assigned_work, scheduler.registered_collections = 1, {worker: {}}, {}
    scheduler.add_node_collection(worker, [Name(f"test_{number}") for number in range(5000)])
    Name.compared = 0
    assert [scheduler.registered_collections[worker].index(f"test_{number}") for number in (0, 4999)] == [0, 4999]
    assert Name.compared <= 4


def test_any_other_test_goes_to_any_worker():
    assert scope("tests/a/test_b.py::test_c[1]") != scope("tests/a/test_b.py::test_c[2]")


@pytest.mark.parametrize("folder", TOGETHER)
def test_where_files_are_handed_out_those_that_look_at_what_is_made_once_share_a_worker(folder):
    files = [file.relative_to(ROOT) for file in sorted((ROOT / folder).glob("test_*.py"))]
    assert len(files) > 1
    assert len({file_scope(f"{file}::test_a[x]") for file in files}) == 1
    assert file_scope("tests/a/test_b.py::test_c[1]") == file_scope("tests/a/test_b.py::test_d") == "tests/a/test_b.py"

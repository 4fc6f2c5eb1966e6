"""Under `--dist loadscope` any worker takes any test, but the tests of a file that share one long run go to one worker.

Under `--dist loadfile` a worker takes whole files, those that took longest last time first, and the files of `TOGETHER`
go to one worker. The mark `xdist_group` would say the same; pytest-xdist 3.8 writes it into a field that pytest 9.2 no
longer has.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling, LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.plugins import durations

# Files whose tests look at one long run, or at what is built once for a file: the demo, the wheels that are built and
# installed, everything that the tables of cases and operations answer, the cluster that the commands of the pages are
# tried on, the words of all modules, the cases of node-problem-detector, which all run at the same time. They start
# first.
SHARED = frozenset(
    {
        "tests/remediator_sim/scenarios/test_demo.py",
        "tests/remediator_sim/test_installed.py",
        "tests/remediator/core/test_case_table.py",
        "tests/remediator/tickets/test_states.py",
        "tests/remediator/controller/test_full_size.py",
        "tests/contract/docs/test_commands.py",
        "tests/contract/test_words.py",
        "tests/contract/test_programs.py",
        "tests/contract/test_nvml_standin.py",
        *(f"tests/contract/npd/test_{part}.py" for part in ("conditions", "publishing", "refusals", "results")),
    }
)

# Whose tests take longest: they start next, or the last worker would be left with one when the others are done.
SIMULATION = "tests/simulation/"
SEEDS = f"{SIMULATION}test_seeds.py"
SEED_WORKERS = 2  # they need a processor all the time; what the other workers do meanwhile mostly waits
LONG = (
    SIMULATION,
    "tests/remediator/controller/test_midflight.py",
    "tests/remediator_sim/invariants/test_observer.py",
    "tests/remediator/controller/test_scenarios.py",
    "tests/bench/",
    "tests/operations/",
    "tests/remediator/kube/api/test_slim.py",
    "tests/remediator/kube/api/test_field_names.py",
    "tests/remediator/test_collector.py",
)
# Folders whose files look at what is made once for all of them: the real nodes, of which a machine carries one set, and
# the world of all accounts, which takes a while to fill.
TOGETHER = ("tests/kubelet/", "tests/cluster/rights/")


def scope(nodeid: str) -> str:
    """What is kept together: the file, where it is one of `SHARED`, a share of the seeds, else the single test."""
    file = nodeid.partition("::")[0]
    if file == SEEDS:
        return f"{file} {sum(nodeid.encode()) % SEED_WORKERS}"
    return file if file in SHARED else nodeid


class Places(list[str]):
    """The tests of a worker. A list looks through half of them for the place of one, which takes a second of a run."""

    def __init__(self, nodeids: Sequence[str]) -> None:
        super().__init__(nodeids)
        self._places = {nodeid: place for place, nodeid in enumerate(nodeids)}

    def index(self, nodeid: str, *_: Any) -> int:
        """Where it is."""
        return self._places[nodeid]


class OneWorker(LoadScopeScheduling):
    """Hands out scopes, the largest first."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Keep what a worker has collected so that the place of a test is looked up."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Places(collection)

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Forgets scopes that are done: the base counts them all again after each test."""
        for name in [name for name, tests in workload.items() if all(tests.values())]:
            del workload[name]
        return sum(list(tests.values()).count(False) for tests in workload.values())


def file_scope(nodeid: str) -> str:
    """What is kept together where files are: the file, or all files of a folder of `TOGETHER`."""
    return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid.partition("::")[0])


class WholeFiles(LoadFileScheduling):
    """Hands out files: what has not run here yet, then what took longest. So all workers end at about the same time."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._seconds: dict[str, float] = {}
        for file, took in durations.load().items():
            self._seconds[file_scope(file)] = self._seconds.get(file_scope(file), 0.0) + took

    def _split_scope(self, nodeid: str) -> str:
        return file_scope(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=lambda scope: self._seconds.get(scope, math.inf))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scopes of one size are handed out in this order."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


SCHEDULERS = {"loadscope": OneWorker, "loadfile": WholeFiles}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorker | WholeFiles | None:
    """The scheduler of these two ways to distribute; others are left to pytest-xdist."""
    scheduler = SCHEDULERS.get(config.getvalue("dist"))
    return scheduler(config, log) if scheduler else None

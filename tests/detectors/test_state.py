"""Every detector overcomes what it may find in its state folder, and says so where it cannot write there."""

import importlib
import json
import os
import sys
from pathlib import Path

import pytest

from nodelib.contract.memory import Scope, Stamp, keep, recall
from nodelib.contract.npd import boot_id
from tests.detectors.conftest import DETECTORS
from tests.detectors.fixtures import all_cases
from tests.harness import node_programs

pytestmark = pytest.mark.sampled
CASES = all_cases()
PROGRAMS = sorted(path.stem for path in DETECTORS.glob("[!_]*.py"))
READERS = ("device_inventory", "node_versions")  # that judge nothing
JUDGES = [program for program in PROGRAMS if program not in READERS]
# What detectors kept before nodelib/contract/memory.py read it by its types, each at a fault of its cases.
EARLIER = json.loads((Path(__file__).parent / "fixtures/earlier_memories.json").read_text())
ABOUT = ("boot_id", "finished_at")
LASTING = ("gpu_lost",)  # knows the GPUs of its node whatever boots
NO_MEMORY = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "another type": lambda _: "[1, 2]",
    "fields of another type": lambda text: json.dumps(
        {**dict.fromkeys(json.loads(text), 7), **{name: json.loads(text)[name] for name in ("boot_id", "at")}}
    ),
    "another boot": lambda text: json.dumps({**json.loads(text), "boot_id": "the boot before"}),
    "from the future": lambda text: json.dumps({**json.loads(text), "at": 1e9}),
}


class Place:
    """A case of a detector, arranged in a folder."""

    def __init__(self, program, verdict, root, library):
        self.program, self.root, self.library = program, root, library
        self.case = next(case for case in CASES[program] if case.verdict == verdict)
        self.case.arrange(root)
        self.state = root / f"state/{program}.json"

    def run(self, now):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, **self.case.environment(self.root, self.library)}
        words = [str(DETECTORS / f"{self.program}.py"), *self.case.arguments(self.root, now)]
        finished = node_programs.run(words, environment)
        assert (finished.err, len(finished.out.splitlines()), finished.out.isascii()) == ("", 1, True), finished
        return finished.code, finished.out

    def all_runs(self):
        return [self.run(now) for now in self.case.runs][-1]


@pytest.mark.parametrize("how", NO_MEMORY)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_state_file_that_is_no_memory_of_this_boot_is_as_none(program, how, tmp_path, nvml_library):
    place = Place(program, 1, tmp_path, nvml_library)
    place.all_runs()
    if not place.state.exists():
        pytest.skip("it has no memory")
    kept = place.state.read_text()
    place.state.unlink()
    without = place.run(place.case.runs[-1])
    place.state.write_text(NO_MEMORY[how](kept))
    if program in LASTING and how in ("another boot", "from the future"):
        without = place.case.verdict, without[1]
    assert place.run(place.case.runs[-1]) == without


@pytest.mark.parametrize("verdict", [0, 1, 2])
@pytest.mark.parametrize("program", JUDGES)
def test_what_a_detector_keeps_is_what_its_next_run_reads(program, verdict, tmp_path, nvml_library):
    place = Place(program, verdict, tmp_path, nvml_library)
    place.all_runs()
    detector = importlib.import_module(program).DETECTOR
    if not place.state.exists():
        pytest.skip("it has no memory")
    content = json.loads(place.state.read_text())
    assert set(content) == {"boot_id", "at", *detector.memory._fields}
    stamp = Stamp(boot_id(tmp_path / "proc"), place.case.runs[-1])
    keep(tmp_path / "again.json", recall(place.state, detector.memory, stamp, Scope.NODE), stamp)
    assert json.loads((tmp_path / "again.json").read_text()) == content


@pytest.mark.parametrize("program", EARLIER)
def test_what_an_earlier_version_kept_is_known_after_the_upgrade(program, tmp_path):
    path, detector, kept = tmp_path / "kept.json", importlib.import_module(program).DETECTOR, EARLIER[program]
    path.write_text(json.dumps(kept))
    known = recall(path, detector.memory, Stamp(kept.get("boot_id", ""), 1e6), detector.scope)
    assert agree({name: value for name, value in kept.items() if name not in ABOUT}, known), known


def agree(kept, known):
    """Whether a value says what an earlier version's file does: there some records have names, and sets are lists."""
    if isinstance(kept, dict):
        parts = known._asdict() if hasattr(known, "_asdict") else known
        return all(name in parts and agree(part, parts[name]) for name, part in kept.items())
    if isinstance(kept, list):
        parts = sorted(known) if isinstance(known, (set, frozenset)) else known
        return len(parts) == len(kept) and all(map(agree, kept, parts))
    return kept == known


@pytest.mark.parametrize("program", JUDGES)
def test_evidence_that_cannot_be_written_costs_no_verdict(program, tmp_path, nvml_library):
    place = Place(program, 1, tmp_path, nvml_library)
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "state/evidence").write_text("a file where a folder should be")
    code, line = place.all_runs()
    assert (code, place.case.part in line) == (1, True)


@pytest.mark.parametrize("program", JUDGES)
def test_a_healthy_node_whose_state_folder_cannot_be_written_is_cannot_tell(program, tmp_path, nvml_library):
    place = Place(program, 0, tmp_path, nvml_library)
    if (tmp_path / "state").exists():
        (tmp_path / "state").rename(tmp_path / "before")
    (tmp_path / "state").write_text("a file where a folder should be")
    code, line = place.all_runs()
    assert code == 2
    assert "Error" in line or "cannot" in line

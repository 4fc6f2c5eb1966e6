"""`remediator rma`: one file for the vendor, and what it says of bad input."""

import gzip
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nodelib.host.bundle import pack
from remediator.cli import rma
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import CASES, NODES
from tests.remediator.core.rma_example import EVIDENCE, FILES, SERIAL, TEXT
from tests.remediator.test_cli import beside

OPEN, OVER, OTHERS = "gpu-17-gpu-memory-worn-3f9c01ab7e", "gpu-17-gpu-lost-0c55aa1234", "gpu-12-gpu-ecc-81d2e7a09c"
DONE = {"operation": "op", "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}
ENDED = {"phase": "Recovered", "endedAt": "2026-11-20T00:00:00Z", "evidence": EVIDENCE, "attempts": [DONE]}


async def cluster() -> MemoryCluster:
    """gpu-17 has an open case, and one that is over; gpu-12 once had the same board; gpu-1 never had a case."""
    made = MemoryCluster()
    for node in ("gpu-1", "gpu-12", "gpu-17"):
        await made.client.create(NODES, {"metadata": {"name": node}})
    trigger = {"condition": "GpuMemoryWorn", "status": "True", "reason": "R", "message": TEXT}
    trigger |= {"since": "2026-11-26T11:30:00Z"}
    for name, status in ((OPEN, {"phase": "Escalated", "evidence": EVIDENCE}), (OVER, ENDED), (OTHERS, ENDED)):
        node = name[:6]
        policy = {"nodeName": node, "nodeUID": "n1", "policyName": name[7:-11], "trigger": trigger}
        await made.make(CASES, name, **policy)
        await made.client.patch(CASES, name, {"status": status}, subresource="status")
    return made


async def asked(folder: Path, *args: object) -> tuple[int, str, str]:
    async with (await cluster()).server.serve() as endpoint:
        words = ("rma", *args, "--kubeconfig", endpoint.kubeconfig)
        given = () if "--output" in args else ("--output", folder / "out.tar.gz")
        return await beside(*words, *given)


def bundle(folder: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """As the program on the node packs it."""
    path = folder / "bundle.tar.gz"
    path.write_bytes(pack(files, 0))
    return path


def packed(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        members: list[Any] = [(info.name, tar.extractfile(info)) for info in tar.getmembers()]
        return {name: file.read().decode(errors="replace") for name, file in members}


async def test_a_node_is_asked_for_and_its_open_case_is_packed_with_the_bundle(tmp_path: Path) -> None:
    code, out, err = await asked(tmp_path, "gpu-17", "--bundle", bundle(tmp_path))
    assert (code, err) == (0, "")
    first, *lacks = out.splitlines()
    assert first == f"{tmp_path}/out.tar.gz: GpuMemoryWorn: board {SERIAL}; 2 earlier cases"
    assert [line.split(":")[1].strip() for line in lacks] == ["log of the field diagnostic"]
    files = packed(tmp_path / "out.tar.gz")
    top = f"rma-{OPEN}"
    assert list(files)[:3] == [f"{top}/{name}" for name in ("README.txt", "evidence.json", "conditions.json")]
    assert files[f"{top}/nvidia-smi.txt"] == "Attached GPUs : 8\n"
    assert "gpu-ecc on gpu-12: reboot: Recovered" in files[f"{top}/README.txt"]
    assert (tmp_path / "out.tar.gz").stat().st_mode & 0o777 == 0o600


async def test_a_case_that_is_over_still_has_its_evidence(tmp_path: Path) -> None:
    code, out, _ = await asked(tmp_path, OVER)
    assert (code, f"board {SERIAL}" in out) == (0, True)
    assert f"missing: bundle of the case: fetch {EVIDENCE['bundle']}" in out


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("gpu-71", "no case and no node gpu-71 in the cluster; did you mean gpu-1 or gpu-17 or gpu-12?"),
        ("gpu-1", "node gpu-1 has had no case"),
    ],
)
async def test_what_has_no_case_is_refused_and_nothing_is_written(tmp_path: Path, what: str, said: str) -> None:
    code, _, err = await asked(tmp_path, what)
    assert (code, said in err) == (2, True), err
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out.tar.gz").write_text("mine")
    code, _, err = await asked(tmp_path, "gpu-17")
    assert (code, "is there already: give another name, or delete it" in err) == (2, True)
    assert (tmp_path / "out.tar.gz").read_text() == "mine"


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    code, _, err = await asked(tmp_path, "gpu-17", "--output", tmp_path / "none/out.tar.gz")
    assert (code, "cannot be written (No such file or directory): give another place" in err) == (2, True)


def test_no_bundle_is_read_that_is_none_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for change, said in (
        ({"LARGEST": 10}, "has more than 0 MiB"),
        ({"UNPACKED": 10}, "it holds more than"),
        ({"MOST_FILES": 3}, "it holds more than 3 files"),
        ({"LARGEST_FILE": 10}, "has more than 0 MiB"),
    ):
        with monkeypatch.context() as patched:
            for name, value in change.items():
                patched.setattr(rma, name, value)
            assert said in refused(bundle(tmp_path), patched)
    (tmp_path / "text").write_text("no archive")
    assert "give the .tar.gz that collect-diagnostics has written" in refused(tmp_path / "text", monkeypatch)
    (tmp_path / "torn").write_bytes(bundle(tmp_path).read_bytes()[:200])
    assert "cannot be read as a bundle" in refused(tmp_path / "torn", monkeypatch)


@pytest.mark.parametrize(
    ("headers", "size", "said"), [(1, 3 * rma.MiB, "a part of it has more than 1 MiB"), (5000, 0, "cannot be read")]
)
def test_of_a_bundle_that_root_on_the_node_has_made_up_no_header_is_taken_at_its_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: int, size: int, said: str
) -> None:
    """A few KB that unpack to a name of gigabytes, which tarfile reads before anybody sees the file, or to 5,000."""
    header = tarfile.TarInfo("name")
    header.type, header.size = tarfile.XHDTYPE, size
    with gzip.open(tmp_path / "bundle", "wb") as file:
        file.write((header.tobuf(tarfile.USTAR_FORMAT) + bytes(size)) * headers)
    assert (tmp_path / "bundle").stat().st_size < 20_000
    monkeypatch.setattr(rma, "LARGEST_FILE", rma.MiB)
    assert said in refused(tmp_path / "bundle", monkeypatch)


def refused(path: Path, patched: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    patched.setattr(rma, "refusal", lambda why: said.append(str(why)) or SystemExit(2))
    with pytest.raises(SystemExit):
        rma._read(path)
    return said[0]


def test_of_a_bundle_only_files_of_known_names_are_taken(tmp_path: Path) -> None:
    read = rma._read(bundle(tmp_path, {"../../etc/cron.d/x": b"x", "sel.txt/../y": b"y", "sel.txt": b"1 | event"}))
    assert dict(read.files) == {"sel.txt": b"1 | event"}

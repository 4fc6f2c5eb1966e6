"""Lists of nodes and Pods as they are published, and what is said of files that are none."""

import re
from pathlib import Path

import pytest

from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import selector
from remediator.scheduler.packing.replay.synthetic import synthetic
from remediator.scheduler.packing.replay.trace import MODEL, NODES, Trace, read
from remediator.scheduler.packing.room import CARD, NodeRoom, Task

GPU = "nvidia.com/gpu"
NODE_LIST = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"
POD_LIST = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos
p0,12000,16384,1,1000,,LS
p1,6000,12288,1,460,P100|T4,LS
p2,20000,65536,0,0,,BE
"""


def written(folder: Path, nodes: str = NODE_LIST, pods: str = POD_LIST) -> Trace:
    (folder / NODES).write_text(nodes)
    (folder / "openb_pod_list_default.csv").write_text(pods)
    return read(folder, "default")


def test_nodes_have_rooms_and_pods_have_tasks(tmp_path: Path) -> None:
    trace = written(tmp_path)
    (node,) = trace.machines
    assert node == ("n0", NodeRoom(64000, (CARD, CARD), 2, GPU, facts_of({MODEL: "P100"})), 262144)
    whole, part, plain = trace.arrivals
    assert (whole.task, whole.memory) == (Task(12000, 1, CARD, GPU), 16384)
    assert part.task == Task(6000, 1, 460, GPU, selector("model in (P100, T4)", None, None))
    assert plain.task == Task(20000)
    assert trace.capacity == 2000


def test_lists_without_a_column_for_models_are_read(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,1,1000\n"
    assert written(tmp_path, pods=pods).arrivals[0].asks == ""


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ("", "openb_pod_list_default.csv: holds nothing"),
        ("name,cpu\np0,1\n", "line 2: no column 'cpu_milli'; give the files of the trace as they are"),
        (POD_LIST.replace("12000", "many"), "line 2: invalid literal for int() with base 10: 'many'"),
    ],
)
def test_a_file_that_is_no_list_is_refused_with_its_line(tmp_path: Path, pods: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        written(tmp_path, pods=pods)


def test_the_made_up_list_is_the_same_each_time_and_has_every_kind_of_pod() -> None:
    trace = synthetic()
    assert trace == synthetic()
    tasks = {arrival.task for arrival in trace.arrivals}
    assert {task.cards for task in tasks} == {0, 1, 2, 4, 8}
    assert any(task.milli < CARD for task in tasks)
    assert any(arrival.asks for arrival in trace.arrivals)

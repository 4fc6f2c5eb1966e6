"""The same of the alerts about nodes: promtool evaluates them over series as the exporters name them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.promtool import Branch, Fires, always, growing, tried, unnoticed
from tests.contract.alerts import generator, of_nodes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
GPU = 'node="gpu-1",UUID="GPU-1",modelName="H100"'
OTHERS = tuple(f'node="gpu-{number}",UUID="GPU-{number}",modelName="H100"' for number in range(2, 6))
IDLE = 'node="gpu-6",UUID="GPU-6",modelName="H100"'
POD = 'namespace="team",pod="train-0"'
PORT = 'node="gpu-1",device="mlx5_0",port="1"'
ON_GPU = {"node": "gpu-1", "UUID": "GPU-1"}
ON_PORT = {"node": "gpu-1", "device": "mlx5_0", "port": "1"}
# A fleet that is well: its GPUs are busy but one that no Pod has, and an application has failed once.
HEALTHY = {
    'kube_node_status_condition{node="gpu-1",condition="Ready",status="true"}': always(1),
    'kube_node_status_condition{node="gpu-1",condition="Ready",status="false"}': always(0),
    'kube_node_status_condition{node="gpu-1",condition="Ready",status="unknown"}': always(0),
    'kube_node_status_condition{node="gpu-1",condition="GpuLost",status="true"}': always(0),
    'kube_node_status_condition{node="gpu-1",condition="DeviceInventory",status="true"}': always(1),
    'probe_success{job="blackbox-nodes",node="gpu-1"}': always(1),
    'probe_success{job="blackbox-nfs",server="nfs-1"}': always(1),
    f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}}": always(13),
    f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{GPU}}}": always(2),
    f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{GPU}}}": always(0),
    f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}}": always(84),
    f"DCGM_FI_DEV_GPU_UTIL{{{GPU},{POD}}}": always(97),
    **{f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}": always(600) for labels in (GPU, *OTHERS)},
    f"DCGM_FI_DEV_POWER_USAGE{{{IDLE}}}": always(70),
    f"DCGM_FI_DEV_GPU_UTIL{{{IDLE}}}": always(0),
    'node_edac_uncorrectable_errors_total{node="gpu-1",controller="0"}': always(1),
    'node_timex_sync_status{node="gpu-1"}': always(1),
    'node_filesystem_avail_bytes{node="gpu-1",mountpoint="/",fstype="ext4"}': always(2e11),
    'node_filesystem_size_bytes{node="gpu-1",mountpoint="/",fstype="ext4"}': always(1e12),
    'node_network_receive_drop_total{node="gpu-1",device="eth0"}': growing(60),
    'node_network_transmit_drop_total{node="gpu-1",device="eth0"}': always(0),
    f"node_infiniband_symbol_error_total{{{PORT}}}": always(40),
    f"node_infiniband_link_downed_total{{{PORT}}}": always(1),
    f"node_infiniband_port_transmit_wait_total{{{PORT}}}": growing(1e6),
    f"node_infiniband_port_data_transmitted_bytes_total{{{PORT}}}": growing(1e12),
}

FIRES: Mapping[str, Fires] = {
    "NodeNotReady": Fires(
        {'kube_node_status_condition{node="gpu-1",condition="Ready",status="unknown"}': always(1)},
        {"node": "gpu-1"},
        "The kubelet of gpu-1 says that it is not Ready, or says nothing.",
    ),
    "NodeConditionTrue": Fires(
        {'kube_node_status_condition{node="gpu-1",condition="GpuLost",status="true"}': always(1)},
        {"node": "gpu-1", "condition": "GpuLost"},
        "gpu-1 has GpuLost.",
    ),
    "NodeUnreachable": Fires(
        {'probe_success{job="blackbox-nodes",node="gpu-1"}': always(0)},
        {"node": "gpu-1"},
        "gpu-1 does not answer on the network.",
    ),
    "NfsServerUnreachable": Fires(
        {'probe_success{job="blackbox-nfs",server="nfs-1"}': always(0)},
        {"server": "nfs-1"},
        "The file server nfs-1 does not answer: every node that mounts it is about to hang.",
    ),
    "GpuXidNeedsRepair": Fires(
        {f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}}": always(79)},
        ON_GPU,
        "GPU GPU-1 of gpu-1 had Xid 79, which calls for a repair.",
    ),
    "GpuEccUncorrected": Fires(
        {f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{GPU}}}": growing(1)},
        ON_GPU,
        "GPU GPU-1 of gpu-1 has memory errors that were not corrected.",
    ),
    "GpuRowRemapFailed": Fires(
        {f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{GPU}}}": always(1)},
        ON_GPU,
        "GPU GPU-1 of gpu-1 has no spare memory rows left where it needs one: have it replaced.",
    ),
    "GpuHot": Fires(
        {f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}}": always(93)}, ON_GPU, "GPU GPU-1 of gpu-1 has 93 degrees Celsius."
    ),
    "GpuPowerLow": Fires(
        {f"DCGM_FI_DEV_POWER_USAGE{{{GPU}}}": always(200)},
        {**ON_GPU, "modelName": "H100"},
        "GPU GPU-1 of gpu-1 is busy and draws 200 W, less than half of what others of its model draw.",
    ),
    "GpuIdle": Fires(
        {f"DCGM_FI_DEV_GPU_UTIL{{{GPU},{POD}}}": always(0)},
        {**ON_GPU, "namespace": "team", "pod": "train-0"},
        "Pod team/train-0 has not used GPU GPU-1 of gpu-1 for two hours.",
    ),
    "NodeMemoryUncorrected": Fires(
        {'node_edac_uncorrectable_errors_total{node="gpu-1",controller="0"}': growing(1)},
        {"node": "gpu-1"},
        "gpu-1 has memory errors that were not corrected.",
    ),
    "NodeClockUnsynchronised": Fires(
        {'node_timex_sync_status{node="gpu-1"}': always(0)},
        {"node": "gpu-1"},
        "Nothing keeps the clock of gpu-1 right.",
    ),
    "NodeDiskFull": Fires(
        {'node_filesystem_avail_bytes{node="gpu-1",mountpoint="/",fstype="ext4"}': always(4e10)},
        {"node": "gpu-1", "mountpoint": "/"},
        "/ of gpu-1 has 4% left.",
    ),
    "NodeNetworkDrops": Fires(
        {'node_network_receive_drop_total{node="gpu-1",device="eth0"}': growing(12_000)},
        {"node": "gpu-1", "device": "eth0"},
        "eth0 of gpu-1 drops 200 packets a second: congestion, or a port that is worn.",
    ),
    "InfinibandErrors": Fires(
        {f"node_infiniband_symbol_error_total{{{PORT}}}": growing(1)},
        ON_PORT,
        "Port 1 of mlx5_0 of gpu-1 had 60 symbol errors and link downs within an hour.",
    ),
    "InfinibandCongested": Fires(
        {f"node_infiniband_port_transmit_wait_total{{{PORT}}}": growing(1e12)},
        ON_PORT,
        "Port 1 of mlx5_0 of gpu-1 waits longer than it sends: congestion.",
    ),
}


MORE: Sequence[Branch] = tuple(
    (
        "GpuXidNeedsRepair",
        Fires(
            {f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}}": always(number)},
            ON_GPU,
            f"GPU GPU-1 of gpu-1 had Xid {number}, which calls for a repair.",
        ),
    )
    for number in map(int, re.findall(r"== (\d+)", of_nodes()["GpuXidNeedsRepair"]["expr"]))
)


def test_nothing_fires_where_nodes_are_well_and_each_alert_fires_alone_where_it_should(tmp_path: Path) -> None:
    tried(generator()["NODES"], HEALTHY, FIRES, tmp_path, MORE)


@pytest.mark.sampled("broken rules", on_server=True)
@pytest.mark.parametrize("name", sorted(FIRES))
def test_a_rule_that_is_broken_in_any_way_is_noticed_by_the_series_of_its_alert(name: str, tmp_path: Path) -> None:
    series = [FIRES[name], *(each for raised, each in MORE if raised == name)]
    assert unnoticed(generator()["NODES"], name, HEALTHY, series, tmp_path) == {}

"""Ports for programs that are told theirs."""

import random
import socket

from remediator_sim import ports
from remediator_sim.ports import OURS, free_ports


def test_six_ports_are_distinct_and_of_our_range():
    got = free_ports(6)
    assert len(set(got)) == 6
    assert {*got} <= {*OURS}


def test_a_port_at_which_somebody_listens_is_not_free(monkeypatch):
    taken, free = free_ports(2)
    monkeypatch.setattr(ports, "OURS", [taken, free])
    with socket.create_server(("127.0.0.1", taken)):
        assert [free_ports(1)[0] for _ in range(20)] == [free] * 20


def test_two_processes_that_were_given_the_same_seed_draw_other_ports():
    drawn = []
    for _ in range(2):
        random.seed(1)
        drawn.append(free_ports(6))
    assert drawn[0] != drawn[1]

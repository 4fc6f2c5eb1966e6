"""One seed tells one story, to the byte, and so is every write behind it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

SEED = 2
SECONDS = 500  # a story takes 10 s of processor time, which a busy machine gives late
WRITES = f"""
from remediator_sim.apiserver.store import Collection
from remediator_sim.simulation.schedule import plan_of
from remediator_sim.simulation.seed import play

put = Collection.put

def told(collection, change):
    print(change.rv, change.type, change.entry.json.decode())
    put(collection, change)

Collection.put = told
outcome = play(plan_of({SEED}))
print("STORY", outcome.checks)
print(outcome.journal)
"""


def story(hashes: str) -> str:
    """What a process of its own tells, whose sets are in the order of this seed of hashes."""
    command, env = (sys.executable, "-c", WRITES), os.environ | {"PYTHONHASHSEED": hashes}
    return subprocess.run(command, stdout=subprocess.PIPE, env=env, check=True, timeout=SECONDS).stdout.decode()


@pytest.mark.timeout(SECONDS + 100)
@pytest.mark.sampled("seeds", rare=True)
def test_two_processes_that_hash_differently_tell_the_same_story_of_one_seed():
    with ThreadPoolExecutor() as beside:
        stories = list(beside.map(story, ("1", "2")))
    assert stories[0] == stories[1]
    assert stories[0].count("\n") > 1000
    begun = stories[0].partition("STORY")[2].partition(" starts as ")[0].splitlines()[1:-1]
    nodes = [line for line in begun if "  policy  " not in line]
    assert all("is registered" in line for line in nodes)
    assert len(nodes) >= 20
    for words in ("is killed", "is held by", "is Recovered", "plan       crash"):
        assert words in stories[0]

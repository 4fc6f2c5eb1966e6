"""One seed tells one story, to the byte, and so is every write behind it."""

import os
import subprocess
import sys

import pytest

SEED = 2
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


@pytest.mark.sampled("seeds", rare=True)
def test_two_processes_that_hash_differently_tell_the_same_story_of_one_seed():
    started = [
        subprocess.Popen(
            (sys.executable, "-c", WRITES), stdout=subprocess.PIPE, env=os.environ | {"PYTHONHASHSEED": hashes}
        )
        for hashes in ("1", "2")
    ]
    stories = [process.communicate(timeout=100)[0].decode() for process in started]
    assert stories[0] == stories[1]
    assert stories[0].count("\n") > 1000
    begun = stories[0].partition("STORY")[2].partition(" starts as ")[0].splitlines()[1:-1]
    nodes = [line for line in begun if "  policy  " not in line]
    assert all("is registered" in line for line in nodes)
    assert len(nodes) >= 20
    for words in ("is killed", "is held by", "is Recovered", "plan       crash"):
        assert words in stories[0]

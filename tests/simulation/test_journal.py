"""One seed tells one story, to the byte."""

import os
import subprocess
import sys

COMMAND = (sys.executable, "-m", "remediator_sim.simulation", "--journal", "--first", "4")


def test_two_processes_that_hash_differently_tell_the_same_story_of_one_seed():
    started = [
        subprocess.Popen(COMMAND, stdout=subprocess.PIPE, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    stories = [process.communicate(timeout=100)[0].decode() for process in started]
    assert stories[0] == stories[1]
    assert stories[0].count("\n") > 100
    begun = stories[0].partition(" starts as ")[0].splitlines()[:-1]
    assert sum("is registered" in line for line in begun) == len(begun) - 4 >= 20  # and one for each policy
    for words in ("is killed", "is held by", "is Recovered", "plan       crash"):
        assert words in stories[0]

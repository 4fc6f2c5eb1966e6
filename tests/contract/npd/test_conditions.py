"""How conditions change from run to run, and when they do not."""

from datetime import timedelta

from tests.contract.npd.playing import CONDITION, SECONDS, together
from tests.harness.waiting import until

SECOND = timedelta(seconds=1)
OTHER = {"type": "Other", "reason": "OtherWell", "message": "nothing else is broken"}


async def later(play, seen):
    """Wait until a change would show in the times, which are whole seconds."""
    return await play.beats(seen.since + SECOND)


async def unchanged(play, seen):
    """Wait until at least one more run was published, a second later or more; nothing but the heartbeat moved."""
    await play.runs(3)
    now = await play.beats((await play.beats(seen.heartbeat + SECOND)).heartbeat)
    assert (now.said, now.since) == (seen.said, seen.since)


@together
async def test_a_fault_that_becomes_unknown_loses_its_reason_and_then_all_is_well(play):
    play.says(1, "GPU 3 is gone")
    await play.start(play.file())
    fault = await later(play, await play.shows("True"))
    play.says(2, "NVML is silent")
    unknown = await play.shows("Unknown")
    assert unknown.said == ("Unknown", "AllWell", "NVML is silent")
    assert unknown.since > fault.since
    await later(play, unknown)
    play.says(0, "8 GPUs")
    healthy = await play.shows("False")
    assert healthy.said == ("False", "AllWell", "nothing is broken")
    assert healthy.since > unknown.since


@together
async def test_from_unknown_to_fault_and_from_fault_to_well_the_time_moves_each_time(play):
    play.says(2, "?")
    await play.start(play.file())
    unknown = await later(play, await play.shows("Unknown"))
    play.says(1, "it broke")
    fault = await play.shows("True")
    assert (fault.said, fault.since > unknown.since) == (("True", "ItBroke", "it broke"), True)
    await later(play, fault)
    play.says(0)
    healthy = await play.shows("False")
    assert (healthy.said, healthy.since > fault.since) == (("False", "AllWell", "nothing is broken"), True)


@together
async def test_a_fault_that_goes_on_with_other_words_keeps_the_first_ones(play):
    play.says(1, "GPU 3")
    await play.start(play.file())
    fault = await later(play, await play.shows("True"))
    play.says(1, "GPU 4")
    await unchanged(play, fault)


@together
async def test_a_fault_that_goes_on_with_other_words_is_new_where_the_flag_says_so(play):
    play.says(1, "GPU 3")
    await play.start(play.file(enable_message_change_based_condition_update=True))
    fault = await later(play, await play.shows("True"))
    play.says(1, "GPU 4")
    other = await play.shows("True", message="GPU 4")
    assert other.since > fault.since
    await play.tells("Warning", "ItBroke", 'Node condition Broken is now: True, reason: ItBroke, message: "GPU 4"')


@together
async def test_what_is_unknown_keeps_its_first_words_whatever_the_flag_says(play):
    play.says(2, "first")
    await play.start(play.file(enable_message_change_based_condition_update=True))
    unknown = await later(play, await play.shows("Unknown"))
    play.says(3, "second")
    await unchanged(play, unknown)


@together
async def test_health_that_goes_on_changes_nothing(play):
    play.says(0)
    await play.start(play.file())
    await unchanged(play, await play.shows("False"))


def two_rules_of_one_condition(play, first, second):
    """A file whose second rule ends three seconds after the first, and as long before both run again."""
    play.says(first, "one", "one")
    play.program(f"time.sleep(3)\nprint('two')\nsys.exit({second})", "two")
    rules = [{"reason": name, "path": str(play.directory / f"{name}.py")} for name in ("one", "two")]
    return play.file(*rules, invoke_interval="6s")


@together
async def test_two_rules_of_one_condition_overrule_each_other(play):
    await play.start(two_rules_of_one_condition(play, 1, 0))
    assert (await play.shows("True")).said == ("True", "one", "one")
    assert (await play.shows("False")).said == ("False", "AllWell", "nothing is broken")
    assert (await play.shows("True")).said == ("True", "one", "one")


@together
async def test_another_reason_is_a_change_though_the_status_is_the_same(play):
    await play.start(two_rules_of_one_condition(play, 1, 1))
    one = await play.shows("True", reason="one")
    two = await play.shows("True", reason="two")
    assert two.since > one.since
    assert (await play.shows("True", reason="one")).since > two.since


@together
async def test_an_empty_message_leaves_the_nodes_last_one_standing(play):
    play.says(1, "GPU 3 is gone")
    await play.start(play.file())
    await play.shows("True")
    play.says(2, "")
    assert (await play.shows("Unknown")).said == ("Unknown", "AllWell", "GPU 3 is gone")


@together
async def test_two_conditions_of_one_file_live_side_by_side(play):
    play.says(1, "one", "one")
    play.says(2, "two", "two")
    rules = [
        {"path": str(play.directory / "one.py")},
        {"path": str(play.directory / "two.py"), "condition": "Other", "reason": "OtherBroke"},
    ]
    await play.start(play.file(*rules, conditions=[CONDITION, OTHER]))
    assert (await play.shows("True")).said == ("True", "ItBroke", "one")
    assert (await play.shows("Unknown", "Other")).said == ("Unknown", "OtherWell", "two")
    play.says(0, name="one")
    await play.shows("False")
    assert (await play.condition("Other")).status == "Unknown"


@together
async def test_two_files_are_published_together(play):
    play.says(1, "one", "one")
    play.says(1, "two", "two")
    first = play.file({"path": str(play.directory / "one.py")}, name="one.json")
    second = {"path": str(play.directory / "two.py"), "condition": "Other"}
    await play.start(first, play.file(second, name="two.json", conditions=[OTHER]))
    assert (await play.shows("True")).message == "one"
    assert (await play.shows("True", "Other")).message == "two"


@together
async def test_all_is_well_until_the_first_run_has_ended(play):
    play.program("time.sleep(300)")
    await play.start(play.file(timeout="60s"))
    first = await play.shows("False")
    assert first.said == ("False", "AllWell", "nothing is broken")
    await until(lambda: play.begun() == 1, SECONDS)


@together
async def test_nothing_is_said_before_the_first_run_has_ended_where_the_flag_says_so(play):
    play.program("while not os.path.exists(__file__ + '.go'): time.sleep(0.05)\nsys.exit(0)")
    speaks = play.says(1, "here", "speaks")
    loud = play.file({"path": str(speaks), "condition": "Other"}, name="loud.json", conditions=[OTHER])
    await play.start(play.file(skip_initial_status=True, timeout="60s"), loud)
    heard = await play.shows("True", "Other")
    await play.beats(heard.heartbeat + SECOND, "Other")
    assert await play.condition() is None
    (play.directory / "check.py.go").touch()
    assert (await play.shows("False")).said == ("False", "AllWell", "nothing is broken")


@together
async def test_the_first_result_of_a_file_publishes_all_its_conditions(play):
    play.program("time.sleep(300)", "slow")
    play.says(1, "quick", "quick")
    rules = [
        {"path": str(play.directory / "slow.py")},
        {"path": str(play.directory / "quick.py"), "condition": "Other"},
    ]
    await play.start(play.file(*rules, skip_initial_status=True, timeout="60s", conditions=[CONDITION, OTHER]))
    await play.shows("True", "Other")
    assert (await play.condition()).said == ("False", "AllWell", "nothing is broken")


@together
async def test_a_rule_of_unknown_type_counts_as_permanent(play):
    play.says(1, "oh")
    await play.start(play.file({"type": "Permanent"}))
    assert (await play.shows("True")).said == ("True", "ItBroke", "oh")


@together
async def test_a_restart_publishes_health_first(play):
    play.says(1, "standing")
    file = play.file()
    await play.start(file)
    await play.shows("True")
    await play.stop()
    play.program("time.sleep(300)")
    await play.start(file)
    assert (await play.shows("False")).reason == "AllWell"


@together
async def test_conditions_of_others_are_left_alone(play):
    await play.writes("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    play.says(1, "oh")
    await play.start(play.file())
    await play.shows("True")
    assert (await play.condition("Ready")).said == ("True", "KubeletReady", "kubelet is posting ready status")


@together
async def test_what_another_wrote_into_a_condition_is_mended_by_the_next_heartbeat(play):
    play.says(1, "oh")
    await play.start(play.file())
    await play.shows("True")
    await play.writes("Broken", "False", "Forged", "all is well")
    assert (await play.shows("True")).said == ("True", "ItBroke", "oh")

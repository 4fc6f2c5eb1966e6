"""Configurations that a detector does not start with, and odd ones that it takes."""

import json

from tests.contract.npd.playing import CONDITION, QUICK, RULE, together


def refused(change, *words):
    """A case: `change` is what is wrong with an otherwise good file, `words` are among what is said of it."""

    async def body(play):
        play.says(0)
        said = await play.refuses(change(play))
        assert play.kind == "real" or all(word in said for word in words), said

    return body


def case(name, change, *words):
    body = refused(change, *words)
    body.__name__ = body.__qualname__ = f"test_{name}"
    body.__module__ = __name__
    globals()[body.__name__] = together(body)


def written(text):
    """The file holds this text."""

    def change(play):
        path = play.directory / "npd.json"
        path.write_text(text)
        return path

    return change


def top(**fields):
    """The whole file with other fields."""

    def change(play):
        path = play.file()
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))
        return path

    return change


def settings(**fields):
    return lambda play: play.file(**fields)


def rule(**fields):
    return lambda play: play.file(fields)


case("a_file_that_is_not_there_is_refused", lambda play: play.directory / "none.json", "No such file")
case("a_file_that_is_no_json_is_refused", written("{"))
case("text_behind_the_json_is_refused", written('{"plugin": "custom"} {}'))
case("a_list_is_refused", written("[]"))
case("no_plugin_is_refused", written("{}"), "plugin", '"custom"')
case("another_plugin_is_refused", top(plugin="journald"), "plugin", "'journald'", '"custom"')
case("an_interval_without_unit_is_refused", settings(invoke_interval="30"), "pluginConfig.invoke_interval", '"60s"')
case("an_interval_of_zero_is_refused", settings(invoke_interval="0s"), "pluginConfig.invoke_interval", "longer than 0s")
case("a_negative_interval_is_refused", settings(invoke_interval="-1s"), "pluginConfig.invoke_interval")
case("an_interval_in_days_is_refused", settings(invoke_interval="1d"), "pluginConfig.invoke_interval")
case("a_duration_that_no_clock_holds_is_refused", settings(invoke_interval="2562048h"), "pluginConfig.invoke_interval")
case("a_number_for_a_duration_is_refused", settings(timeout=5), "pluginconfig.timeout")
case("an_empty_duration_is_refused", settings(timeout=""), "pluginConfig.timeout")
case("a_rules_bad_timeout_is_refused", rule(timeout="soon"), "rules[0].timeout", "'soon'")
case("a_rule_with_more_time_than_the_monitor_is_refused", rule(timeout="21s"), "rules[0].timeout", "(21s)", "(20s)")
case("a_program_that_is_not_there_is_refused", rule(path="/nowhere/check"), "rules[0].path", "'/nowhere/check'")
case("a_rule_without_a_program_is_refused", rule(path=""), "rules[0].path")
case("a_rule_without_its_condition_is_refused", rule(condition="Elsewhere"), "rules[0].condition", "'Elsewhere'")
case("a_fraction_of_a_byte_is_refused", settings(max_output_length=80.5), "max_output_length")
case("a_text_for_a_number_is_refused", settings(concurrency="3"), "concurrency")
case("a_negative_concurrency_is_refused", settings(concurrency=-1), "pluginConfig.concurrency")
case("a_negative_length_is_refused", settings(max_output_length=-1), "pluginConfig.max_output_length")
case("a_text_for_a_flag_is_refused", settings(skip_initial_status="yes"), "skip_initial_status")
case("conditions_that_are_no_list_are_refused", top(conditions=CONDITION), "conditions")
case("a_rule_that_is_nothing_is_refused", top(rules=[None]), "rules")
case("arguments_that_are_no_list_are_refused", rule(args="--all"), "args")
case("a_transition_that_is_no_time_is_refused", top(conditions=[CONDITION | {"transition": "noon"}]), "transition")


@together
async def test_fields_that_nobody_knows_are_taken(play):
    play.says(1, "oh")
    await play.start(play.file({"invoke_interval": "1h", "owner": "me"}, colour="red"))
    assert (await play.shows("True")).message == "oh"


@together
async def test_the_case_of_a_key_does_not_matter(play):
    path = play.says(1, "x" * 20)
    body = {
        "PLUGIN": "custom",
        "pluginconfig": {"Invoke_Interval": "300ms", "MAX_OUTPUT_LENGTH": 9},
        "Source": "contract",
        "Conditions": [{"Type": "Broken", "REASON": "AllWell", "message": "fine"}],
        "RULES": [{"TYPE": "permanent", "Condition": "Broken", "reason": "ItBroke", "Path": str(path)}],
    }
    file = play.directory / "npd.json"
    file.write_text(json.dumps(body))
    await play.start(file)
    assert (await play.shows("True")).said == ("True", "ItBroke", "xxxxxxxxx")


@together
async def test_null_stands_for_not_given(play):
    play.says(1, "oh")
    nothing = dict.fromkeys([*QUICK, "concurrency", "skip_initial_status"])
    await play.start(play.file({"args": None, "timeout": None}, **nothing | {"invoke_interval": "300ms"}))
    assert (await play.shows("True")).said == ("True", "ItBroke", "oh")


@together
async def test_a_status_in_the_file_is_overruled(play):
    play.program("time.sleep(300)")
    condition = CONDITION | {"status": "True", "transition": "2020-01-01T00:00:00Z"}
    await play.start(play.file(conditions=[condition]))
    seen = await play.shows("False")
    assert seen.since.year > 2020


@together
async def test_of_two_conditions_of_one_type_the_last_is_shown_and_never_changes(play):
    play.says(1, "oh")
    twin = CONDITION | {"reason": "Twin"}
    await play.start(play.file(conditions=[CONDITION, twin]))
    await play.tells("Warning", "ItBroke", 'Node condition Broken is now: True, reason: ItBroke, message: "oh"')
    await play.runs(2)
    assert (await play.shows("False")).reason == "Twin"


@together
async def test_durations_may_have_many_parts(play):
    play.says(1, "oh")
    await play.start(play.file(RULE | {"timeout": "0.1h1m2s3ms4us5ns"}, timeout="1h30m", invoke_interval="+.3s"))
    assert (await play.shows("True")).message == "oh"

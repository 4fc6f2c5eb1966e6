"""All kept cases of a node, in the order in which they were opened."""

from dataclasses import replace

from remediator.core.past_cases import oldest_first
from tests.builders import a_case, at


def test_of_two_cases_of_one_second_the_one_whose_fault_began_first_stands_first():
    earlier, later = a_case("z", created=3), a_case("a", created=3)
    later = replace(later, trigger=replace(later.trigger, since=at(2)))
    older = a_case("m", created=1)
    assert [case.name for case in oldest_first([later, earlier, older])] == ["m", "z", "a"]

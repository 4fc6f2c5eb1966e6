"""A decision table: the first row that fits gives the result, and no table leaves an observation without one."""

from dataclasses import dataclass

import pytest

from remediator.core.table import Row, Table


@dataclass(frozen=True)
class Weather:
    rain: bool
    cold: bool


COAT = Row({"rain": True, "cold": True}, "coat", "Both come before either of them alone.")
UMBRELLA = Row({"rain": True}, "umbrella", "Rain comes before all that is left.")
REST = Row({}, "nothing", "The last row answers for all that is left.")


@pytest.mark.parametrize(
    ("rain", "cold", "result"),
    [(True, True, "coat"), (True, False, "umbrella"), (False, True, "nothing"), (False, False, "nothing")],
)
def test_the_first_row_that_fits_gives_the_result(rain, cold, result):
    table = Table((COAT, UMBRELLA, REST))
    assert table.result(Weather(rain, cold)) == table.row(Weather(rain, cold)).result == result


@pytest.mark.parametrize("rows", [(), (COAT,), (REST, UMBRELLA)])
def test_a_table_whose_last_row_asks_for_something_is_refused(rows):
    with pytest.raises(ValueError, match="must ask for nothing"):
        Table(rows)


def test_a_row_that_asks_for_what_is_not_observed_is_an_error_and_not_a_row_that_never_fits():
    with pytest.raises(AttributeError, match="snow"):
        Table((Row({"snow": True}, "sledge", "Snow comes first."), REST)).result(Weather(rain=False, cold=True))

"""The table of how much code there is counts what it says."""

from tests.bench.lines import part_size, row

LONG = "def long():\n" + "    x = 1\n" * 35
SHORT = "def short():\n    return 1\n"


def test_a_part_of_ten_functions_of_2_lines_and_one_of_36_has_its_median_and_90th_percentile() -> None:
    size = part_size({"a.py": SHORT * 9, "b.py": LONG + SHORT})
    assert size == (2, 56, 2, 2, 1, "`b.py`, 38")
    assert row("product", size) == "| product | 2 | 56 | 2 | 2 | 1 | `b.py`, 38 lines |"


def test_the_longest_tenth_counts_also_where_a_function_is_a_method_or_a_coroutine() -> None:
    text = "class A:\n    async def method(self):\n        return 1\n\n        # a comment\n        x = 2\n"
    assert part_size({"a.py": text + SHORT})[2:5] == (3.5, 5, 0)

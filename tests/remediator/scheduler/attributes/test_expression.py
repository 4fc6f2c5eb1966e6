"""What a Pod asks by attributes, as a line: what is read of it, and where a mistake is."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes import catalog, expression, values
from remediator.scheduler.attributes.expression import parse
from remediator.scheduler.attributes.requirement import AttributeOperator, AttributeRequirement

Op = AttributeOperator
GIB = 2**30


@pytest.mark.parametrize("module", [values, expression, catalog])
def test_the_examples_of_the_docstrings_hold(module) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory>=40Gi", AttributeRequirement("memory", Op.GE, (40 * GIB,))),
        ("memory > 8000", AttributeRequirement("memory", Op.GT, (8000 * 2**20,))),
        ("memory<80GB", AttributeRequirement("memory", Op.LT, (80 * 10**9,))),
        ("memory<=1.5Ti", AttributeRequirement("memory", Op.LE, (1536 * GIB,))),
        ("nvidia.com/gpu-memory>1", AttributeRequirement("memory", Op.GT, (2**20,))),
        ("nvidia.com/gpu.memory>1", AttributeRequirement("memory", Op.GT, (2**20,))),
        ("ecc=true", AttributeRequirement("ecc", Op.IN, (True,))),
        ("ecc == off", AttributeRequirement("ecc", Op.IN, (False,))),
        ("ecc!=true", AttributeRequirement("ecc", Op.NOT_IN, (True,))),
        ("computeCapability>=8.0", AttributeRequirement("computeCapability", Op.GE, ((8,),))),
        ("driver in (535.129.03,550)", AttributeRequirement("driver", Op.IN, ((535, 129, 3), (550,)))),
        ("model notin ( *A100* , Tesla-T4 )", AttributeRequirement("model", Op.NOT_IN, ("*a100*", "tesla-t4"))),
        ("clique", AttributeRequirement("clique", Op.EXISTS)),
        (" ! clique ", AttributeRequirement("clique", Op.DOES_NOT_EXIST)),
        ("count=8", AttributeRequirement("count", Op.IN, (8,))),
    ],
)
def test_a_requirement_is_read(text: str, expected: AttributeRequirement) -> None:
    assert parse(text) == (expected,)


def test_requirements_are_joined_by_commas() -> None:
    text = "memory>=40Gi, ecc=true,computeCapability>=8.0 , model in (*A100*, *H100*)"
    assert [row.attribute for row in parse(text)] == ["memory", "ecc", "computeCapability", "model"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", 1, "write requirements such as"),
        ("memroy>=40Gi", 1, "'memroy' is no attribute; write one of memory model"),
        ("ecc=true, memroy>=40Gi", 11, "'memroy' is no attribute"),
        ("memory>=40Gx", 9, "'40Gx' is no size"),
        ("memory>=-1", 9, "'-1' is no size"),
        ("memory>=4 Gi", 11, "with a comma between them"),
        ("memory>=40Gi ecc=true", 14, "with a comma between them"),
        ("memory>=40Gi,", 14, "write requirements such as"),
        ("memory>=40Gi,  ,ecc=true", 16, "write requirements such as"),
        ("memory>=", 7, "write requirements such as"),
        ("memory=>4", 7, "write requirements such as"),
        ("model>A100", 7, "model is a text and is never more or less"),
        ("ecc=yes", 5, "'yes' is neither true nor false"),
        ("computeCapability>=8.x", 20, "'8.x' is no version"),
        ("count=8.5", 7, "'8.5' is no whole number"),
        ("model=a$b", 7, "'a$b' is no value of a label"),
        ("model in ()", 11, "'' is no value of a label"),
        ("model in (a", 7, "write requirements such as"),
        ("!ecc=true", 1, "! takes an attribute alone"),
        ("count in (" + ",".join(map(str, range(17))) + ")", 11, "In takes 1 to 16 values"),
        ("clique," * 16 + "clique", 113, "more than 16 requirements"),
        ("ecc=true\N{NO-BREAK SPACE}x", 5, "is neither true nor false"),
    ],
)
def test_a_mistake_has_its_place_and_what_would_help(text: str, place: int, words: str) -> None:
    with pytest.raises(ValueError, match=f"^at character {place}: ") as caught:
        parse(text)
    assert words in str(caught.value)


def test_what_is_too_long_is_not_read() -> None:
    with pytest.raises(ValueError, match="longer than 2048 characters"):
        parse("clique," * 300)


@given(st.text(max_size=60) | st.text("memory>=<!40Gi, ()in", max_size=60))
def test_whatever_is_written_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    try:
        assert parse(text)
    except ValueError as error:
        place = str(error).removeprefix("at character ").partition(":")[0]
        assert 1 <= int(place) <= len(text) + 1

"""What the judge takes for a sign of another system: the same as the product does."""

from remediator.core.maintenance import SIGNS, SignOf
from remediator_sim.invariants import contract


def test_the_judge_knows_every_sign_that_the_product_knows_and_no_other():
    known = {where: {sign.key: sign.values for sign in SIGNS if sign.where is where} for where in SignOf}
    assert known[SignOf.TAINT].keys() == contract.SIGN_TAINTS
    assert known[SignOf.CONDITION].keys() == contract.SIGN_CONDITIONS
    assert known[SignOf.LABEL] == contract.SIGN_LABELS

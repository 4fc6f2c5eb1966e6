"""What we serve with is good for its names and its time, is renewed before it ends, and locks nobody out."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from remediator.web import certificates
from remediator.web.certificates import renewed

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY, NAMES = timedelta(days=1), ["remediator-extender.gpu.svc", "127.0.0.1"]


def made(now: datetime = NOW) -> dict[str, bytes]:
    found = renewed({}, NAMES, now)
    assert found is not None
    return found


def leaf(found: dict[str, bytes]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(found["tls.crt"])


def test_an_empty_secret_gets_an_authority_and_a_certificate_that_is_good_since_an_hour_and_for_90_days() -> None:
    found = made()
    assert set(found) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert leaf(found).not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificates.ends(found["tls.crt"]) == NOW + 90 * DAY
    assert certificates.ends(found["ca.crt"]) == NOW + 3650 * DAY
    names = leaf(found).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == NAMES


@pytest.mark.parametrize(("days", "kept"), [(0, True), (60, True), (61, False), (400, False), (-30, True)])
def test_a_certificate_with_less_than_30_days_is_renewed_under_the_same_authority(days: int, kept: bool) -> None:
    """30 days before it was made is a clock that is wrong: theirs or ours, and two that differ must not take turns."""
    old = made()
    new = renewed(old, NAMES, NOW + days * DAY)
    assert (new is None) is kept
    if new is not None:
        assert (new["ca.crt"], new["ca.key"]) == (old["ca.crt"], old["ca.key"])
        assert new["tls.key"] != old["tls.key"]


def test_a_certificate_for_other_names_is_made_anew_and_one_for_more_is_kept() -> None:
    assert renewed(made(), [*NAMES, "another.svc"], NOW) is not None
    assert renewed(made(), NAMES[:1], NOW) is None


def test_a_new_certificate_of_the_authority_vouches_for_what_the_old_one_has_signed_and_the_other_way_round() -> None:
    old = made()
    assert renewed(old, NAMES, NOW + (3650 - 731) * DAY) is not None, "the leaf alone"
    new = renewed(old, NAMES, NOW + (3650 - 729) * DAY)
    assert new is not None
    assert new["ca.crt"] != old["ca.crt"]
    leaf(old).verify_directly_issued_by(x509.load_pem_x509_certificate(new["ca.crt"]))
    leaf(new).verify_directly_issued_by(x509.load_pem_x509_certificate(old["ca.crt"]))


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("how", ["missing", "garbage", "of another"])
def test_what_is_not_ours_is_never_written_over_and_the_refusal_holds_no_secret(name: str, how: str) -> None:
    found = made()
    if how == "missing":
        del found[name]
    else:
        found[name] = b"SECRET" if how == "garbage" else made()[name]
    with pytest.raises(ValueError, match="to make all of it anew") as refused:
        renewed(found, NAMES, NOW)
    assert "SECRET" not in str(refused.value)
    assert "PRIVATE" not in str(refused.value)


def test_a_callers_certificate_serves_nobody_and_ends_when_it_was_said_to() -> None:
    shown = certificates.for_caller(made(), "kube-scheduler", 7 * DAY, NOW)
    assert set(shown) == {"ca.crt", "tls.crt", "tls.key"}
    assert certificates.ends(shown["tls.crt"]) == NOW + 7 * DAY
    usage = leaf(shown).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]

from __future__ import annotations

from svc.learning.fits import Fits, parsed
from svc.stats import Fitted, from_parameters

PLATT = from_parameters({"kind": "platt", "a": 1.5, "b": 0.25})


def test_fits_are_read_back_as_they_were_written() -> None:
    fits = Fits(Fitted(PLATT, 300), {"@demo/m logprobs": Fitted(PLATT, 120, own=True)})
    text = fits.dumps()
    assert parsed(text) == fits
    assert parsed(text) is parsed(text)


def test_a_text_of_very_many_answering_models_is_not_kept_in_memory() -> None:
    groups = {f"@demo/{number:0250}": Fitted(PLATT, 1, own=True) for number in range(1_000)}
    text = Fits(Fitted(PLATT, 300), groups).dumps()
    assert text is not None
    first = parsed(text)
    assert first.of(f"@demo/{7:0250}") == first.pooled.calibrator
    assert parsed(text) is not first


def test_models_that_have_the_calibrator_of_all_are_not_written_down() -> None:
    groups = {f"@demo/{number:0250}": Fitted(PLATT, 1) for number in range(5_000)}
    groups["@demo/raw"] = Fitted(None, 40)
    fits = parsed(Fits(Fitted(PLATT, 5_040), groups).dumps())
    assert fits.by_group.keys() == {"@demo/raw"}
    assert fits.of(f"@demo/{7:0250}") == PLATT and fits.of("@demo/raw") is None

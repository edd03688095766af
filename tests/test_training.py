"""Training's own tests (``make test-training``) have passed on what stands in ``training/``."""

from training.tests.passed import FILE, sum_of_sources


def test_training_was_tested_as_it_stands() -> None:
    assert FILE.read_text().strip() == sum_of_sources(), "training/ has changed: make test-training"

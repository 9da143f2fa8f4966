"""docs/cases.md: every case is there, what it names exists, and nothing counts as passed that is not."""

import pytest

import cases
from cases import FAILED, MISSING, PASSED, Case, Outcome

PAGE = cases.PAGE.read_text()


def test_every_case_is_on_the_page_and_names_tests_that_exist():
    cases.check_names(cases.read_page(PAGE))


def test_a_case_that_is_left_out_is_noticed():
    first, second = PAGE.index("### FR-03"), PAGE.index("### FR-04")
    with pytest.raises(cases.PageError, match="FR-03"):
        cases.read_page(PAGE[:first] + PAGE[second:])


def test_a_test_that_does_not_exist_is_noticed():
    for test in (
        "cargo:router:serving:framing::no_such_test",
        "cargo:router:lib:http1::request::tests::no_such_test",
        "pytest:tests/e2e/test_wire_cases.py::test_no_such",
        "pytest:tests/e2e/test_no_such.py::test_no_such",
    ):
        with pytest.raises(cases.PageError, match="does not exist"):
            cases.check_names([Case("FR-01", "", [test])])


def test_a_case_is_no_better_than_its_worst_test():
    outcomes = {"good": Outcome(PASSED), "bad": Outcome(FAILED, "x"), "off": Outcome(MISSING, "y")}

    def word(tests, missing=()):
        return cases.judge(Case("FR-01", "", list(tests), list(missing)), outcomes).word

    assert word(["good"]) == PASSED
    assert word(["good", "bad", "off"]) == FAILED
    assert word(["good", "off"]) == MISSING
    assert word(["good"], ["a part of it"]) == MISSING
    assert word(["bad"], ["a part of it"]) == FAILED
    assert word([], ["all of it"]) == MISSING

"""What every policy must do: `check_policy` for authors of policies, and our own conformance tests.

    from firstclick.testing import PolicyTests, check_policy
    check_policy(MyPolicy(eagerness=2.0))

    class TestMyPolicy(PolicyTests):  # the same for pytest, a test for each check
        policy = MyPolicy(eagerness=2.0)

Each check says what is wrong and what the likely cause is. A policy declares what it can
(`mergeable`, `order_free`, `learns`, ...); checks that do not apply are skipped, and `checks_of` says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.testing import checks
from firstclick.testing.driver import N_FEATURES, N_ITEMS, Driver, K, request, states_differ

__all__ = [
    "CHECKS",
    "N_FEATURES",
    "N_ITEMS",
    "Check",
    "Driver",
    "K",
    "PolicyTests",
    "check_policy",
    "checks_of",
    "request",
    "states_differ",
]


@dataclass(frozen=True)
class Check:
    """One rule, and the capabilities that a policy must declare for the rule to apply.

    Attributes:
        rule: Raises AssertionError if a policy breaks it.
        needs: Names of capabilities, such as `"mergeable"`.
    """

    rule: Callable[[Policy], None]
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.rule.__name__

    def reason_to_skip(self, policy: Policy) -> str:
        """Why the rule does not apply to a policy; empty if it does.

        Args:
            policy: The policy.
        """
        lacking = [f"{need} = False" for need in self.needs if not getattr(policy, need)]
        if not lacking and policy.n_context and self.rule is checks.beats_random_order:
            return f"{policy.label} wants a context, and the world of this check gives none"
        if self.rule is checks.items_left_out_teach_nothing and "exclude" in policy.misreads:
            return f"{policy.label} declares that it misreads exclude"
        return f"{policy.name} declares {' and '.join(lacking)}" if lacking else ""


CHECKS = (
    Check(checks.gives_k_distinct_items),
    Check(checks.respects_candidates_and_hidden_items),
    Check(checks.respects_caps),
    Check(checks.takes_the_features_of_a_request, needs=("takes_features",)),
    Check(checks.recommend_leaves_the_state_alone),
    Check(checks.same_noise_gives_the_same_slate),
    Check(checks.unexamined_positions_teach_nothing),
    Check(checks.items_left_out_teach_nothing),
    Check(checks.counts_one_unit_of_time_a_slate),
    Check(checks.continues_after_save_and_load),
    Check(checks.merged_shards_equal_the_whole_log, needs=("mergeable",)),
    Check(checks.order_of_feedback_does_not_matter, needs=("order_free",)),
    Check(checks.a_late_click_takes_the_place_of_none, needs=("corrects",)),
    Check(checks.stays_finite_in_extremes),
    Check(checks.relabelling_items_only_permutes_slates, needs=("unordered",)),
    Check(checks.keeps_what_it_knows_when_items_are_added, needs=("growable",)),
    Check(checks.estimates_follow_what_is_observed),
    Check(checks.beats_random_order, needs=("learns", "quick")),
)


def checks_of(policy: Policy | str) -> list[tuple[Check, str]]:
    """All checks, each with the reason to skip it for this policy; empty if it applies.

    >>> [reason for check, reason in checks_of("random") if reason][-1]
    'random declares learns = False'

    Args:
        policy: A policy, or its description.
    """
    made = make_policy(policy)
    return [(check, check.reason_to_skip(made)) for check in CHECKS]


def say_nothing(line: str) -> None:
    """Report to nobody."""


def check_policy(policy: Policy | str, *, report: Callable[[str], Any] = say_nothing) -> None:
    """Check that a policy follows all rules that apply to it.

    >>> heard = []
    >>> check_policy("random", report=heard.append)
    >>> len(heard) > 0
    True

    Args:
        policy: A policy, or its description.
        report: Called with one line per check.

    Raises:
        AssertionError: A rule is broken. The message says which, and the likely cause.
    """
    made = make_policy(policy)
    for check, reason in checks_of(made):
        report(f"{check.name}: {'skipped, ' + reason if reason else 'checked'}")
        if not reason:
            check.rule(made)


class PolicyTests:
    """All checks as pytest tests. Derive a test class from it and set `policy`.

    Attributes:
        policy: The policy to test, or its description.
    """

    policy: Policy | str


def _as_test(check: Check) -> Callable[[PolicyTests], None]:
    def test(self: PolicyTests) -> None:
        policy = make_policy(self.policy)
        if reason := check.reason_to_skip(policy):
            raise SkipTest(reason)
        check.rule(policy)

    return test


for _check in CHECKS:
    setattr(PolicyTests, f"test_{_check.name}", _as_test(_check))

"""`firstclick bound`: Theorem 1 in numbers."""

from typing import Annotated

from typer import Option

from firstclick.cli.console import print_json
from firstclick.cli.options import count, number
from firstclick.theory import confidence_width, regret_bound


def bound(
    n_features: Annotated[int, count("Number of features d.", "--features")] = 20,
    k: Annotated[int, count("Number of recommended items K.")] = 4,
    steps: Annotated[int, count("Number of steps n.")] = 100_000,
    sigma: Annotated[float, number("Learning rate of CascadeLinUCB.")] = 1.0,
    theta_norm: Annotated[float, number("Bound on the norm of the true theta.")] = 1.0,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Theorem 1 of Zong et al. 2016: the width c that CascadeLinUCB needs, and its regret bound.

    \b
    Example, where the bound says something:
      firstclick bound --features 2 --k 1 --steps 1000000 --sigma 1 --theta-norm 1
    """
    given = {"n_features": n_features, "k": k, "steps": steps}
    c = confidence_width(**given, sigma=sigma, theta_norm=theta_norm)
    regret = regret_bound(**given, sigma=sigma, theta_norm=theta_norm)
    if json:
        print_json(
            {**given, "sigma": sigma, "theta_norm": theta_norm, "c": c, "regret_bound": regret,
             "says_something": regret < steps}
        )  # fmt: skip
        return
    print(f"c             {c:.6g}")
    print(f"regret bound  {regret:.6g}")
    if regret < steps:
        print(f"At most {regret / steps:.2g} clicks lost a step, over {steps:,} steps.")
    else:
        print(f"The bound exceeds n = {steps:,}, what any policy can lose at most: it says nothing here.")

"""Learners by what they are made for, in the order in which the guide has them."""

FAMILIES = {
    "Counts for each item": ("cascade-ts", "cascade-kl-ucb", "cascade-ucb-v", "cascade-ucb1", "ts-cascade"),
    "Item features": (
        "cascade-lin-ts", "cascade-lin-ucb", "lin-ts-cascade", "vac2-ucb", "logistic-ts", "ranked-lin-ts",
    ),
    "Several clicks": ("dcm-kl-ucb", "dcm-lin-ts", "dcm-lin-ucb", "pbm-ucb", "pbm-pie"),
    "Users who differ": ("context-lin-ts", "c3-ucb", "segment-lin-ts"),
    "Moving tastes": (
        "cascade-ducb", "cascade-swucb", "cascade-glr-ucb", "discounted-lin-ts", "discounted-lin-ucb",
    ),
    "Variety": ("cascade-lsb", "cascade-hybrid"),
    "No click model": ("top-rank", "batch-rank", "bubble-rank", "recur-rank"),
}  # fmt: skip

# Learners of others; and random order, which all are measured by.
OTHERS, FLOOR = "Others", "random"


def family_of(name: str) -> str:
    """The family of the learner of this name."""
    if name == FLOOR:
        return ""
    return next((family for family, names in FAMILIES.items() if name in names), OTHERS)


def in_order(name: str) -> tuple[int, int]:
    """What learners are sorted by: family after family, random order last."""
    family = family_of(name)
    order = [*FAMILIES, OTHERS, ""].index(family)
    return order, FAMILIES[family].index(name) if family in FAMILIES else 0

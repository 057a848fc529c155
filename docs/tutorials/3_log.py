# %% [markdown]
# # Evaluate a log
#
# What would another list have earned? A log can answer if some of its pages were random. This café made
# up its log, so you can compare each answer with the truth.
#
# ## A log
#
# The page shows two of six drinks. 95 % of the pages show the list, 5 % two random drinks.

# %%
import json

import numpy as np

draw = np.random.default_rng(7)
attraction = {
    "espresso": 0.11, "cocoa": 0.09, "chai": 0.18, "matcha": 0.26, "flat-white": 0.21, "iced-tea": 0.05,
}  # fmt: skip
drinks, listed = list(attraction), ["espresso", "cocoa"]


def page(explore):
    slate = draw.permutation(drinks)[:2].tolist() if draw.random() < explore else listed
    click = next((place for place in range(2) if draw.random() < attraction[slate[place]]), None)
    first = explore / 6 + (1 - explore) * (slate[0] == listed[0])
    both = explore / 30 + (1 - explore) * (slate == listed)
    return {"items": slate, "click": click, "propensities": [first, both]}


for week in ("week1.jsonl", "week2.jsonl"):
    with open(week, "w") as log:
        log.writelines(json.dumps(page(explore=0.05)) + "\n" for _ in range(60_000))
print(open("week1.jsonl").read(180))

# %% [markdown]
# `propensities`: the probability that the page shows the first drink, and both drinks.
#
# ## What the log holds

# %% [bash]
# firstclick evaluate describe week1.jsonl

# %% [markdown]
# ## Which click model fits
#
# The guests click the first drink that attracts, so the cascade model `cm` should fit.

# %% [bash]
# firstclick click-model fit week1.jsonl --out page.npz

# %% [markdown]
# ## Learn from week 1, judge on week 2
#
# A policy looks too good on pages that it has learned from.

# %%
from firstclick import Catalog, Ranker

ranker = Ranker(Catalog(drinks), k=2, seed=1)
with open("week1.jsonl") as log:
    ranker.warm_start(map(json.loads, log))
ranker.save("learned.npz")
print("learned; it would show", ranker.recommend().items)

# %% [bash]
# firstclick evaluate run week2.jsonl --policy random --policy list:chai,espresso \
#     --policy greedy:learned.npz | head -9

# %% [markdown]
# ## The forest plot
#
# The same in Python. A dot is the estimate, the line its 95 % interval.

# %%
# %matplotlib inline
from firstclick.evaluation import FixedList, GreedySlate, Uniform, evaluate, forest_plot
from firstclick.logs.open_log import open_ranked_log

policies = {
    "random": Uniform(),
    "chai, espresso": FixedList(["chai", "espresso"]),
    "learned from week 1": GreedySlate(ranker),
}
found = evaluate(open_ranked_log("week2.jsonl"), policies)
forest_plot(found)

# %% [markdown]
# Here the truth is known:


# %%
def worth(*slates):
    return np.mean([1 - np.prod([1 - attraction[drink] for drink in slate]) for slate in slates])


pairs = [(a, b) for a in drinks for b in drinks if a != b]
truth = [worth(*pairs), worth(["chai", "espresso"]), worth(["matcha", "flat-white"])]
for (name, _), true in zip(policies.items(), truth, strict=True):
    value = found.answer(name).value
    print(f"{name:20} {value.value:.3f}  ({value.low:.3f} to {value.high:.3f})  truth {true:.3f}")

# %% [markdown]
# ## A log that cannot answer
#
# Without random pages nobody saw the other drinks. firstclick gives no number, and says what to log.

# %%
with open("list_only.jsonl", "w") as log:
    log.writelines(json.dumps(page(explore=0)) + "\n" for _ in range(5_000))
print(open("list_only.jsonl").read(90))

# %% [bash --no-raise-error]
# firstclick evaluate run list_only.jsonl --policy list:chai,espresso

# %% [markdown]
# Show 5 % random pages (`explore=0.05` in `Ranker`, `--explore 0.05` in `serve`) and log their
# probabilities. Next: [evaluating a log](../guide/evaluating.html), [from a log to a
# launch](../guide/log_to_launch.html).

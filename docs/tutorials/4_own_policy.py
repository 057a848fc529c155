# %% [markdown]
# # Write your own policy
#
# A policy is one class: a state of arrays, a function that ranks and a function that learns. Numba
# compiles the functions. The example ranks items by click rate plus a bonus for items that were seen
# rarely.
#
# ## The state
#
# A file, so that other processes and the command line find the policy.

# %% [writefile optimist.py]
# from typing import NamedTuple
#
# import numpy as np
#
# from firstclick import Policy, param
# from firstclick.kernels.ranking import rank, rows_of
#
#
# class Counts(NamedTuple):
#     examined: np.ndarray  # by item
#     clicks: np.ndarray  # by item
#     time: np.ndarray  # slates learned from; always last
#
#
# class Optimist(Policy):
#     """Rank items by click rate plus some standard errors."""
#
#     name = "optimist"
#     family = "counts"
#     bonus: float = param(1.0, "standard errors above the rate", at_least=0)
#
#     def initial_state(self, n_items, n_features, k):
#         return Counts(np.zeros(n_items, np.int64), np.zeros(n_items, np.int64), np.zeros(1, np.int64))

# %% [markdown]
# Items come later, and logs are merged:

# %% [writefile -a optimist.py]
#
#     def grow(self, state, n_items):
#         more = np.zeros(n_items - len(state.clicks), np.int64)
#         examined, clicks = (np.concatenate([one, more]) for one in state[:2])
#         return Counts(examined, clicks, state.time)
#
#     def merge(self, first, second):
#         return Counts(*(a + b for a, b in zip(first, second, strict=True)))

# %% [markdown]
# ## Rank and learn
#
# `rank` sorts by score, breaks ties and keeps the rules of the request. Only the first `examined` positions
# were seen.

# %% [writefile -a optimist.py]
#
#     @staticmethod
#     def recommend(numbers, state, catalog, request, key, noise, slate):
#         rows = rows_of(catalog, request)  # the items that this request allows
#         scores = np.empty(len(rows))
#         for j in range(len(rows)):
#             n = state.examined[rows[j]] + 2.0
#             rate = (state.clicks[rows[j]] + 1.0) / n
#             scores[j] = rate + numbers.bonus * np.sqrt(rate * (1.0 - rate) / n)
#         return rank(rows, scores, catalog, request, key, slate)
#
#     @staticmethod
#     def learn(numbers, state, catalog, request, slate, examined, clicks):
#         for position in range(examined):
#             state.examined[slate[position]] += 1
#             state.clicks[slate[position]] += clicks[position]
#         state.time[0] += 1

# %% [markdown]
# ## Check it
#
# `check_policy` plays the policy through every rule of the library.

# %%
from optimist import Optimist

from firstclick.testing import check_policy

check_policy(Optimist(), report=print)

# %% [markdown]
# A mistake has a name. This version learns from positions that nobody looked at:


# %%
class Careless(Optimist):
    name = "careless"

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):
        for position in range(len(slate)):
            state.examined[slate[position]] += 1
            state.clicks[slate[position]] += clicks[position]
        state.time[0] += 1


try:
    check_policy(Careless())
except AssertionError as error:
    print(error)

# %% [markdown]
# ## Race it
#
# First without features, where counting is all that can be done:

# %%
# %matplotlib inline
from firstclick import simulate
from firstclick.report import regret_figure

policies = [Optimist(), Optimist(bonus=0.0), "cascade-mixed", "cascade-ts"]
counts = simulate(policies, "blb:n_items=40,k=4,p=0.2,gap=0.1", k=4, steps=20_000, runs=8, seed=1)
regret_figure(counts)

# %% [markdown]
# Then with 200 items and useful features. The default learns from them; the new policy cannot.

# %%
policies = [Optimist(), "cascade-mixed", "cascade-ts"]
linear = simulate(policies, "linear:n_items=200,n_features=8", k=4, steps=10_000, runs=8, seed=1)
regret_figure(linear)

# %% [markdown]
# ## Keep it
#
# Name the module as an entry point `firstclick.plugins` of your package. Then `firstclick compare`,
# `simulate` and `serve` know `optimist` too. See [add a policy](../research/add_a_policy.html).

# %%
for result in linear.results:
    regret = result.final("expected_regret")
    print(f"{result.policy:16}{regret['mean']:7.0f} ± {regret['stderr']:.0f}")

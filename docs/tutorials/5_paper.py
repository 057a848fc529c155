# %% [markdown]
# # The paper, figure by figure
#
# [Zong et al. 2016](https://arxiv.org/abs/1603.05359) introduced CascadeLinTS and CascadeLinUCB.
# `firstclick reproduce` plays all of its experiments.
#
# The outputs here are from **made-up data** of MovieLens' size that ships with firstclick, with 2,000
# steps and 4 runs instead of 100,000 and 10. They show the pictures, not the paper's numbers.

# %% [bash]
# firstclick reproduce --dataset synthetic-movielens --steps 2000 --runs 4 --out look > look.txt
# head -11 look.txt

# %% [markdown]
# ## Figure 1: more items
#
# CascadeUCB1 learns each item alone, so its regret grows with the number of items L. The linear policies
# learn from features. CascadeLinTS stays below RankedLinTS, which keeps one learner for each position.

# %%
from IPython.display import Image

Image("look/figure-1.png", width=760)

# %%
import csv

rows = list(csv.DictReader(open("look/results.csv")))
last = [row for row in rows if row["experiment"] == "1" and row["step"] == "2000"]
for row in last:
    regret = float(row["expected_regret"])
    print(f"L = {row['items']:>5}  {row['policy']:15} {regret:6.0f} clicks lost in 2,000 steps")

# %% [markdown]
# ## Figure 2: features, groups, longer slates
#
# Regret of CascadeLinTS by number of features d, on all items and on one genre; regret and reward by slate
# length K. More features cost more at first. Longer slates get more clicks.

# %%
Image("look/figure-2.png", width=760)

# %% [markdown]
# ## The sweep over sigma
#
# The paper says in a footnote that sigma matters little. In so few steps it matters a lot.

# %%
Image("look/sweep-sigma.png", width=620)

# %% [markdown]
# ## The claims
#
# Each sentence of the paper has a rule, written down before the runs. Made-up data gives no verdict.

# %%
import json

claims = json.load(open("look/claims.json"))["claims"]
for claim in claims:
    if claim["dataset"] == "movielens" and claim["experiment"] == "experiment 1":
        print(f"- {claim['sentence']}\n  {claim['verdict']}")

# %% [markdown]
# ## With MovieLens
#
# `firstclick data download movielens-1m --data data` fetches it, once you agree to its terms. Then set
# `FIRSTCLICK_MOVIELENS` to the folder and run this cell.

# %%
import os
import subprocess

folder = os.environ.get("FIRSTCLICK_MOVIELENS")
if folder:
    command = f"firstclick reproduce --dataset movielens --steps 2000 --runs 4 --data {folder} --out real"
    subprocess.run(command.split(), check=True, capture_output=True)
Image("real/figure-1.png", width=760) if folder else print("MovieLens was not found")

# %% [markdown]
# All 100,000 steps take minutes. [Reproduction](../research/reproduction.html) has the results: of 16
# claims about MovieLens 9 hold, 3 do not, 4 cannot be decided.

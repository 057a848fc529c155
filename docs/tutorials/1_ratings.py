# %% [markdown]
# # From ratings to a policy
#
# You have a file of ratings. You want a page that learns what to show. This takes five minutes.
#
# ## A file of ratings
#
# The file here is made up: 800 customers, 120 films of four genres, 1 to 5 stars. Use your own instead.

# %%
import csv

import numpy as np

draw = np.random.default_rng(1)
genres = np.array(["drama", "comedy", "crime", "space"])
genre = draw.integers(0, 4, 120)
quality = draw.normal(0, 0.7, 120)
taste = draw.normal(0, 1, (800, 4))

with open("ratings.csv", "w", newline="") as file:
    write = csv.writer(file).writerow
    write(["customer", "film", "genre", "stars"])
    for customer in range(800):
        for film in draw.choice(120, 30, replace=False):
            liking = 2.6 + quality[film] + taste[customer, genre[film]] + draw.normal(0, 0.7)
            stars = int(np.clip(np.rint(liking), 1, 5))
            write([f"c{customer}", f"film-{film}", genres[genre[film]], stars])

print(open("ratings.csv").read(120))

# %% [markdown]
# ## What is in it
#
# A film attracts a customer who gave it more than 3 stars.

# %% [bash]
# firstclick data describe table:user=customer,item=film,value=stars,above=3 --data ratings.csv

# %% [markdown]
# ## Features
#
# Films that the same people like get similar features. The policy learns about one film from clicks on another.

# %% [bash]
# firstclick features --interactions ratings.csv --user-column customer --item-column film \
#     --value-column stars --above 3 --group-column genre --rank 6 --out films.csv
# head -3 films.csv

# %% [markdown]
# ## Which policy
#
# `compare` plays the usual policies on your data: half of the customers give the features, the others click.

# %% [bash]
# firstclick compare --interactions ratings.csv --user-column customer --item-column film \
#     --value-column stars --above 3 --rank 6 --k 4 --steps 5000 --runs 8 --seed 1

# %%
# %matplotlib inline
from firstclick import simulate
from firstclick.data import FeedbackScenario, feedback_matrix, read_interactions
from firstclick.report import regret_figure

ratings = read_interactions(
    "ratings.csv", user_column="customer", item_column="film", value_column="stars", above=3
)
shelf = FeedbackScenario(feedback_matrix(ratings), rank=6, item_names=ratings.names)
policies = ["cascade-mixed", "cascade-lin-ts", "cascade-ts", "random"]
results = simulate(policies, shelf, k=4, steps=5000, runs=8, seed=1, jobs=2)
regret_figure(results)

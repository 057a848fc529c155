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
# Films that the same people like get similar features. The policy learns about one film from clicks on
# another.

# %% [bash]
# firstclick features --interactions ratings.csv --user-column customer --item-column film \
#     --value-column stars --above 3 --group-column genre --rank 6 --out films.csv
# head -3 films.csv

# %% [markdown]
# ## Which policy
#
# `compare` plays the usual policies on your data: half of the customers give the features, the others
# click.

# %% [bash]
# firstclick compare --interactions ratings.csv --user-column customer --item-column film \
#     --value-column stars --above 3 --rank 6 --k 4 --steps 5000 --runs 8 --seed 1

# %% [markdown]
# The same in Python, with a picture. Regret counts the clicks lost against the best four films. A curve
# that flattens has learned.

# %%
# %matplotlib inline
from firstclick import simulate
from firstclick.data import FeedbackScenario, feedback_matrix, read_interactions
from firstclick.report import regret_figure

ratings = read_interactions(
    "ratings.csv", user_column="customer", item_column="film", value_column="stars", above=3
)
films = FeedbackScenario(feedback_matrix(ratings), rank=6, item_names=ratings.names)
policies = ["cascade-mixed", "cascade-lin-ts", "cascade-ts", "random"]
results = simulate(policies, films, k=4, steps=5000, runs=8, seed=1)
regret_figure(results)

# %% [markdown]
# ## In your program
#
# A `Ranker` recommends four films and learns from the click. It uses the default policy.

# %%
from firstclick import Catalog, Ranker

ranker = Ranker(Catalog.read("films.csv"), k=4, seed=1)
slate = ranker.recommend()
print(slate.items)
ranker.learn(slate, click=2)  # the third film was clicked; None for no click

# %% [markdown]
# Let 4,000 visitors come. Each looks from the top and clicks the first film that attracts. The ranker is
# close to the best four films after a few hundred visitors.

# %%
import matplotlib.pyplot as plt

row = {name: place for place, name in enumerate(ratings.names)}
liked = feedback_matrix(ratings).toarray()
clicked = []
for visitor in draw.integers(0, len(liked), 4000):
    slate = ranker.recommend()
    likes = [place for place, film in enumerate(slate.items) if liked[visitor, row[film]]]
    ranker.learn(slate, click=likes[0] if likes else None)
    clicked.append(bool(likes))

rates = np.mean(np.reshape(clicked, (40, 100)), axis=1)
best = liked[:, [row[film] for film in ("film-65", "film-107", "film-96", "film-35")]].any(axis=1).mean()
by_chance = np.mean([one[draw.choice(120, 4, replace=False)].any() for one in liked])
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(np.arange(100, 4001, 100), rates, label="ranker, by 100 visitors")
axes.axhline(best, color="black", linestyle="--", label="best four films")
axes.axhline(by_chance, color="gray", linestyle=":", label="four random films")
axes.legend(frameon=False, ncols=3, fontsize=8, loc="lower center")
axes.set(xlabel="visitors", ylabel="visits with a click", ylim=(0, 0.7))
axes.grid(alpha=0.3)
plt.show()

# %% [markdown]
# Save what was learned, and go on later.

# %%
ranker.save("films.npz")
again = Ranker.load("films.npz")
print(again.recommend(exclude=["film-65"]).items)

# %% [markdown]
# Next: [the same as a service](2_shop.html), or [Ranker in detail](../guide/ranker.html).

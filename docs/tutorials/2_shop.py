# %% [markdown]
# # A shop
#
# A shop has a product file and a list that somebody ordered by hand. You start firstclick beside that
# list and find out whether it is better.
#
# ## A messy catalog
#
# Decimal commas, missing ratings, two spellings of a brand, a price that is no number:

# %%
import csv

import numpy as np

draw = np.random.default_rng(4)
kinds, brands = ["Sencha", "Assam", "Chai", "Matcha", "Mint"], ["Acme", "Bolt", "Crux", "acme"]
attraction = {}
with open("products.csv", "w", newline="") as file:
    write = csv.writer(file, delimiter=";").writerow
    write(["sku", "title", "brand", "kind", "price", "organic", "rating", "released", "currency"])
    for number in range(80):
        kind, brand, organic = draw.choice(kinds), draw.choice(brands), draw.random() < 0.4
        price = draw.lognormal(1.8, 0.5)
        cell = "on request" if number == 7 else f"{price:.2f}".replace(".", ",")
        rating = "" if draw.random() < 0.2 else f"{draw.uniform(3, 5):.1f}"
        day = np.datetime64("2024-01-01") + draw.integers(0, 500)
        words = f"{kind} no. {number}"
        write([f"T-{number}", words, brand, kind, cell, "yes" if organic else "no", rating, day, "EUR"])
        # What a visitor likes. The shop does not know this.
        liking = -4.2 + 1.3 * (kind == "Matcha") + 0.9 * organic - 0.5 * np.log(price / 6)
        attraction[f"T-{number}"] = 1 / (1 + np.exp(-liking - draw.normal(0, 0.4)))
print(open("products.csv").read(260))

# %% [bash]
# firstclick catalog describe products.csv

# %% [markdown]
# ## The list of today
#
# Visitors look from the top and click the first tea that attracts.

# %%
by_attraction = sorted(attraction, key=attraction.get, reverse=True)
listed = [by_attraction[place] for place in (12, 30, 18, 45, 24, 38)]
with open("list.csv", "w") as file:
    file.write("id\n" + "\n".join(listed) + "\n")


def chance(slate):
    """How likely a visitor clicks on a slate."""
    return 1 - np.prod([1 - attraction[item] for item in slate])


print(f"today's list: {chance(listed):.1%} of visits with a click")
print(f"the best six: {chance(by_attraction[:6]):.1%}")

# %% [markdown]
# ## Start the service
#
# In a terminal you would type `firstclick serve --catalog products.csv ...`. `--max-loss 0.05` keeps
# expected clicks above 95 % of the list's.

# %%
import os
import re
import subprocess
import sys

options = "--catalog products.csv --k 6 --name shop --store shop.db --seed 1 --port 0 --snapshot-events 2000"
server = subprocess.Popen(
    [sys.executable, "-m", "firstclick", "serve", *options.split(), "--baseline", "list.csv"],
    stdout=subprocess.DEVNULL, stderr=open("serve.log", "w"),
)  # fmt: skip
address = None
while address is None and server.poll() is None:
    address = re.search(r"http://[\d.]+:\d+", open("serve.log").read())
address = os.environ["SHOP"] = address[0]
print("serving" if server.poll() is None else open("serve.log").read())

# %% [markdown]
# Your page asks for a slate and reports the click. `unit` is the visitor's id.

# %%
from firstclick.client import Client

shop = Client(address, model="shop")
shown = shop.recommend(unit="visitor 1")
print(shown.items, shown.reasons)
print(shop.feedback(shown, click=None))

# %% [markdown]
# ## A trial
#
# 80 % of the visitors get the policy, 20 % keep the list.

# %%
shop.start_trial({"policy": 0.8, "baseline": 0.2})


def visit(pages):
    """So many pages, reported ten at a time; the share with a click."""
    clicks, reports = 0, []
    for page in range(pages):
        shown = shop.recommend(unit=f"visitor {draw.integers(0, 5000)}")
        likes = [place for place, item in enumerate(shown.items) if draw.random() < attraction[item]]
        reports.append((shown, likes[0] if likes else None))
        clicks += bool(likes)
        if len(reports) == 10 or page == pages - 1:
            shop.feedback_batch(reports)
            reports = []
    return clicks / pages


for day in range(1, 6):
    print(f"day {day}: {visit(1200):.1%} of pages with a click")

# %% [markdown]
# ## Is it better?

# %% [bash]
# firstclick trial report shop --server $SHOP

# %% [markdown]
# ## The dashboard
#
# Open the server's address in a browser. This is a screenshot.

# %%
import shutil
from pathlib import Path

from IPython.display import Image

browser = shutil.which("chromium") or shutil.which("google-chrome")
if browser:
    picture = "--headless --no-sandbox --disable-gpu --hide-scrollbars --screenshot=shop.png"
    size = "--window-size=1100,1090 --virtual-time-budget=4000"
    subprocess.run([browser, *picture.split(), *size.split(), address], capture_output=True, check=False)
Image("shop.png", width=760) if Path("shop.png").exists() else print("no Chromium: open", address)

# %% [markdown]
# ## Stop and audit
#
# `audit` learns the whole log again and compares the result bit for bit.

# %%
shop.close()
server.terminate()
print("stopped, exit code", server.wait())

# %% [bash]
# firstclick audit --store shop.db

# %% [markdown]
# Next: [launching](../guide/launching.html), [trials](../guide/trials.html), [running the
# service](../service/run.html).

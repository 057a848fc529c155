"""Other libraries that learn from clicks, each used as its own documentation recommends.

Each is one file with one class: `recommend()` gives k items, `learn(slate, click)` takes the place of the
first click, k for none. They are played in processes of their own; `process.py` watches over them.
"""

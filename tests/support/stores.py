"""Stores that fail on purpose."""

from firstclick.serve.store import open_store


class _Failing:
    """A store of either kind in which `before[method]` is called before the method, and may raise."""

    def __getattribute__(self, method):
        attribute = super().__getattribute__(method)
        check = super().__getattribute__("before").get(method)
        if check is None:
            return attribute

        def call(*arguments, **more):
            check()
            return attribute(*arguments, **more)

        return call


def failing_store(url, **settings):
    """Open a store; set `store.before["append"] = function` to have it fail."""
    store = open_store(url, **settings)
    store.before = {}
    store.__class__ = type("FailingStore", (_Failing, type(store)), {})
    return store


def raising(error):
    """Return a function that raises this error at every call."""

    def fail():
        raise error

    return fail

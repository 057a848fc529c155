"""What firstclick raises when a caller breaks a rule."""

from typing import Self


class FirstclickError(Exception):
    """Any mistake that firstclick can name; the message is one sentence for people.

    `argument` is the argument it is about and `problem` what is wrong with it. `owner` is whose argument it
    is, if not the caller's own: a policy, a file. Backquotes in a problem mark other arguments, such as
    `overwrite=True`: the command line puts its options in their place.

    >>> str(InvalidInput("must be at least 1, got 0", "k"))
    'k must be at least 1, got 0'
    """

    def __init__(self, problem: str, argument: str = "", owner: str = "") -> None:
        self.problem, self.argument, self.owner = problem, argument, owner
        message = f"{argument} {problem}" if argument else problem
        super().__init__(f"{owner}: {message}" if owner else message)

    def within(self, owner: str) -> Self:
        """The same error, now about a part of `owner`, such as a file."""
        self.args = (f"{owner}: {self}",)
        self.owner = f"{owner}: {self.owner}" if self.owner else owner
        return self


class InvalidInput(FirstclickError, ValueError):
    """A value given by the caller breaks a rule.

    >>> from firstclick import Catalog, InvalidInput, Ranker
    >>> try:
    ...     Ranker(Catalog(["tea", "milk"]), k=3)
    ... except InvalidInput as error:
    ...     print(error)
    k must be at most 2, the items there are, got 3
    """


class DuplicateFeedback(InvalidInput):
    """The slate was learned already. Nothing was learned twice, and nothing is lost.

    >>> from firstclick import Catalog, DuplicateFeedback, Ranker
    >>> ranker = Ranker(Catalog(["tea", "milk"]), k=1, policy="random")
    >>> slate = ranker.recommend()
    >>> ranker.learn(slate, click=0)
    >>> try:
    ...     ranker.learn(slate, click=0)
    ... except DuplicateFeedback:
    ...     print("counted once")
    counted once
    """


class ForgottenSlate(InvalidInput):
    """The slate waited too long: more than `max_pending` others were shown, and its click is lost.

    >>> from firstclick import Catalog, ForgottenSlate, Ranker
    >>> ranker = Ranker(Catalog(["tea", "milk"]), k=1, policy="random", max_pending=1)
    >>> first, second = ranker.recommend(), ranker.recommend()
    >>> try:
    ...     ranker.learn(first, click=0)
    ... except ForgottenSlate:
    ...     print("too late")
    too late
    """


class UnknownSlate(InvalidInput):
    """The slate is not of this ranker, or was shown by a later one than the file it was loaded from.

    >>> from firstclick import Catalog, Ranker, UnknownSlate
    >>> catalog = Catalog(["tea", "milk"])
    >>> mine, other = Ranker(catalog, k=1, policy="random"), Ranker(catalog, k=1, policy="random")
    >>> try:
    ...     mine.learn(other.recommend(), click=0)
    ... except UnknownSlate:
    ...     print("not of this ranker")
    not of this ranker
    """


class UnknownName(FirstclickError, LookupError):
    """No policy, world or column has this name.

    >>> from firstclick import UnknownName, make_policy
    >>> try:
    ...     make_policy("cascade-lints")
    ... except UnknownName as error:
    ...     print(error)
    unknown policy 'cascade-lints'; did you mean 'cascade-lin-ts'?
    """


class WorkFailed(FirstclickError, RuntimeError):
    """The request was right, but the work could not be finished."""

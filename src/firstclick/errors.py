"""What firstclick raises when a caller breaks a rule."""

from typing import Self


class FirstclickError(Exception):
    """The base of all errors that firstclick raises. The message is one sentence for people.

    >>> str(InvalidInput("must be at least 1, got 0", "k"))
    'k must be at least 1, got 0'

    Args:
        problem: What is wrong. Backquotes mark other arguments, such as `overwrite=True`; the command line
            prints its options in their place.
        argument: The argument it is about.
        owner: What the argument belongs to, if not to the caller: a policy or a file.
    """

    def __init__(self, problem: str, argument: str = "", owner: str = "") -> None:
        self.problem, self.argument, self.owner = problem, argument, owner
        message = f"{argument} {problem}" if argument else problem
        super().__init__(f"{owner}: {message}" if owner else message)

    def within(self, owner: str) -> Self:
        """The same error, with the part it is about named first.

        Args:
            owner: What the error is about, such as a file.
        """
        self.args = (f"{owner}: {self}",)
        self.owner = f"{owner}: {self.owner}" if self.owner else owner
        return self


class InvalidInput(FirstclickError, ValueError):
    """An argument breaks a rule.

    >>> from firstclick import Catalog, InvalidInput, Ranker
    >>> try:
    ...     Ranker(Catalog(["tea", "milk"]), k=3)
    ... except InvalidInput as error:
    ...     print(error)
    k must be at most 2, the items there are, got 3
    """


class DuplicateFeedback(InvalidInput):
    """The slate was learned already. It still counts once.

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
    """The feedback came too late: more than `max_pending` newer slates were shown. It is not learned.

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
    """This ranker did not show the slate, or showed it after the file was saved that it was loaded from.

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
    """No policy, world, item or column has this name.

    >>> from firstclick import UnknownName, make_policy
    >>> try:
    ...     make_policy("cascade-lints")
    ... except UnknownName as error:
    ...     print(error)
    policy 'cascade-lints' is unknown; did you mean 'cascade-lin-ts'?
    """


class WorkFailed(FirstclickError, RuntimeError):
    """The arguments were right, but the work could not be finished."""

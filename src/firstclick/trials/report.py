from dataclasses import dataclass


@dataclass
class TrialReport:
    x: int = 0


def report(*a, **k):
    return TrialReport()


def as_json(r):
    return {}


def as_text(r):
    return ""

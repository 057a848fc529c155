"""How many slates were recommended and how many were reported, folded from the log."""

from typing import Any

from firstclick.serve.log.events import Recommended
from firstclick.serve.model.click_stats import TIERS, ClickStats

HOUR = 3600
# A process that said within so many seconds how many slates it has recommended is alive: it does so every
# minute in which it recommends any.
LIVE_SECONDS = 150.0
# Hours of which it is known how many slates were recommended, and how many of them are looked at.
KEPT_HOURS = 48
LOOKED_AT = 24
# Slates from which on a share means something.
ENOUGH = 200
# Shares from which on there is something to warn of: of slates that nobody reports, and of reported slates
# with a click. No page of a shop has a click nearly always.
UNREPORTED = 0.5
CLICKED = 0.97


class Reports:
    """Slates that were recommended, by arm and by hour, and the processes that said so."""

    def __init__(self) -> None:
        self.by_arm: dict[int, int] = {}
        self.by_hour: dict[int, int] = {}
        self.seen: dict[str, float] = {}  # by process, when it last said something
        self.timed_out = (
            0  # slates that nobody reported in time, and that were taken for ones without a click
        )
        self.corrected = 0  # of these, ones that were clicked later

    @property
    def recommended(self) -> int:
        """Slates that were recommended, as far as processes have said so."""
        return sum(self.by_arm.values())

    def add(self, received: float, said: Recommended) -> None:
        """What a process says it has recommended."""
        hour = int(received // HOUR)
        for arm, slates in sorted(said.slates.items()):
            self.by_arm[arm] = self.by_arm.get(arm, 0) + slates
            self.by_hour[hour] = self.by_hour.get(hour, 0) + slates
        self.seen[said.process] = received
        newest = max(self.by_hour, default=hour)
        self.by_hour = {at: n for at, n in self.by_hour.items() if at > newest - KEPT_HOURS}
        latest = max(self.seen.values())
        self.seen = {name: at for name, at in self.seen.items() if at > latest - HOUR}

    def live(self, now: float, process: str) -> int:
        """How many processes recommend slates now, this one included."""
        others = sum(
            name != process and abs(now - at) <= LIVE_SECONDS for name, at in self.seen.copy().items()
        )
        return others + 1

    def reported(self, stats: ClickStats, now: float) -> tuple[int, int] | None:
        """Slates that were recommended, and slates that a page reported, in the last full hours but one: by
        now these have had their time. None while there are none, or too few."""
        hour = int(now // HOUR)
        # The first hour has slates of which nobody said that they were recommended.
        first = max(min(self.by_hour, default=hour) + 1, hour - 1 - LOOKED_AT)
        hours = range(first, hour - 1)
        recommended = sum(self.by_hour.get(at, 0) for at in hours)
        if recommended < ENOUGH:
            return None
        by_hour = stats.tiers[[width for width, _ in TIERS].index(HOUR)]
        return recommended, sum(by_hour[at][0] for at in hours if at in by_hour)

    def unreported(self, stats: ClickStats, now: float) -> float | None:
        """The share of slates whose outcome nobody reports; None while too little is known.

        Slates that were taken for ones without a click, because nobody reported them, count as reported.
        """
        counted = self.reported(stats, now)
        return None if counted is None else max(0.0, 1.0 - counted[1] / counted[0])

    def warnings(self, stats: ClickStats, now: float) -> list[str]:
        """What is wrong with what is reported, if anything, a sentence each."""
        way_out = (
            "Learning from clicks alone makes every item look attractive. Report pages without a click too "
            "(click: null), or set no_click_after"
        )
        share = self.unreported(stats, now)
        if share is not None and share >= UNREPORTED:
            recommended, reported = self.reported(stats, now) or (0, 0)
            return [f"of {recommended:,} slates recommended lately, {reported:,} were reported. {way_out}"]
        recent = stats.recent_rate(ENOUGH)
        if recent is not None and recent >= CLICKED:
            return [f"{recent:.0%} of the slates reported lately had a click. {way_out}"]
        return []

    def as_json(self) -> dict[str, Any]:
        """For snapshots and digests."""
        return {
            "by_arm": sorted(self.by_arm.items()),
            "by_hour": sorted(self.by_hour.items()),
            "seen": sorted(self.seen.items()),
            "timed_out": self.timed_out,
            "corrected": self.corrected,
        }

    @classmethod
    def from_json(cls, page: dict[str, Any]) -> "Reports":
        """Those of a snapshot."""
        reports = cls()
        reports.by_arm = {int(arm): int(n) for arm, n in page["by_arm"]}
        reports.by_hour = {int(at): int(n) for at, n in page["by_hour"]}
        reports.seen = {str(name): float(at) for name, at in page["seen"]}
        reports.timed_out, reports.corrected = int(page["timed_out"]), int(page["corrected"])
        return reports

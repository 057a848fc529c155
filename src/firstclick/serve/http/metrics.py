"""Numbers for Prometheus, read from the service when they are asked for."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily as Counts
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily as Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from firstclick.serve.dashboard.data import OUTCOMES
from firstclick.serve.service import Service

# Seconds; a recommendation takes some hundred microseconds, durable feedback some milliseconds.
EDGES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Durations:
    """How long requests took, in buckets. Counted on the event loop alone."""

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES) + 1)
        self.sum = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(EDGES, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Edge and how many took at most that long."""
        totals = map(float, accumulate(list(self.counts)))
        return list(zip([*map(str, EDGES), "+Inf"], totals, strict=True))


class Metrics(Collector):
    """All numbers. What requests leave behind is counted here, the rest is the service's own."""

    media = CONTENT_TYPE_PLAIN_0_0_4.encode()

    def __init__(self, service: Service) -> None:
        self._service = service
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.durations: dict[str, Durations] = {}
        self.running = 0
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """In the format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._of_requests()
        yield from self._of_models()
        writer, silence = self._service.writer, self._service.maintenance.silence()
        yield Gauge("firstclick_waiting_events", "Events that wait for a commit", writer.n_waiting)
        yield Counts("firstclick_commits", "Commits to the store", writer.commits)
        sizes = "Events in those commits, duplicates too; by commits: the mean size of a batch"
        yield Counts("firstclick_committed_events", sizes, writer.events)
        yield Gauge("firstclick_commit_seconds", "How long a commit took lately", writer.seconds)
        yield Gauge("firstclick_store_silence_seconds", "How long the store has not answered", silence)

    def _of_requests(self) -> Iterator[Metric]:
        requests = Counts("firstclick_requests", "Requests answered", labels=["method", "route", "code"])
        for (method, route, code), n in sorted(self.requests.copy().items()):
            requests.add_metric([method, route, str(code)], n)
        yield requests
        durations = Histogram(
            "firstclick_request_seconds",
            "How long requests took, from their body to their answer",
            labels=["route"],
        )
        for route, found in sorted(self.durations.items()):
            durations.add_metric([route], found.buckets(), found.sum)
        yield durations
        yield Gauge("firstclick_requests_running", "Requests being answered", self.running)

    def _of_models(self) -> Iterator[Metric]:
        service, maintenance = self._service, self._service.maintenance
        labels = ["model"]
        feedback = Counts("firstclick_feedback", "Feedback by what became of it", labels=["model", "outcome"])
        recommended = Counts("firstclick_recommended", "Slates recommended", labels=labels)
        seq = Gauge("firstclick_seq", "The last event that the model knows", labels=labels)
        behind = "How long the log has had events that the model does not know"
        lag = Gauge("firstclick_lag_seconds", behind, labels=labels)
        newest = "The last event of the newest snapshot made here"
        snapshot = Gauge("firstclick_snapshot_seq", newest, labels=labels)
        items = Gauge("firstclick_items", "Items that can be shown", labels=labels)
        differing = "Share of the last slates that differed from the best one"
        exploring = Gauge("firstclick_exploring_share", differing, labels=labels)
        set_back = "Times that the log was found to have lost events that this process knows of"
        set_backs = Counts("firstclick_set_backs", set_back, labels=labels)
        gone = "Events that were lost so, or at least so many"
        lost = Counts("firstclick_lost_events", gone, labels=labels)
        counted = "Slates recommended by all processes, as the log has it: up to a minute old"
        in_log = Counts("firstclick_recommended_in_log", counted, labels=labels)
        known = "Slates in the log whose outcome is known, those that timed out included"
        reported = Counts("firstclick_reported", known, labels=labels)
        given_up = "Slates that nobody reported within no_click_after: they count as no click"
        timed_out = Counts("firstclick_timed_out", given_up, labels=labels)
        without = "Share of the slates of the last day whose outcome nobody reported"
        unreported = Gauge("firstclick_unreported_share", without, labels=labels)
        waiting = "Slates of this process whose outcome is waited for"
        open_slates = Gauge("firstclick_open_slates", waiting, labels=labels)
        no_room = "Open slates that were dropped, because there were too many"
        dropped = Counts("firstclick_open_slates_lost", no_room, labels=labels)
        for model in service.models.all():
            name = model.name
            in_log.add_metric([name], model.reports.recommended)
            reported.add_metric([name], model.click_stats.slates)
            timed_out.add_metric([name], model.reports.timed_out)
            if (rest := model.unreported()) is not None:
                unreported.add_metric([name], rest)
            open_slates.add_metric([name], len(model.open))
            dropped.add_metric([name], model.open.lost)
            counts = dict(service.outcomes.get(name, {}))
            for outcome in OUTCOMES:
                feedback.add_metric([name, outcome], counts.get(outcome, 0))
            recommended.add_metric([name], service.recommended[name])
            seq.add_metric([name], model.seq)
            lag.add_metric([name], maintenance.lag(name))
            snapshot.add_metric([name], maintenance.snapshot_seq(name))
            items.add_metric([name], len(model.catalog))
            differed = service.exploring.get(name)
            if differed is not None and (share := differed.share()) is not None:
                exploring.add_metric([name], share[0])
            found = service.models.set_backs.get(name, [])
            set_backs.add_metric([name], len(found))
            lost.add_metric([name], sum(one.lost for one in found))
        yield from (feedback, recommended, seq, lag, snapshot, items, exploring, set_backs, lost)
        yield from (in_log, reported, timed_out, unreported, open_slates, dropped)

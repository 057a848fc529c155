"""The models of a store at work: everything that HTTP offers, for use within a program too.

with open_service("shop.db") as service:
    service.create("shop", policy="cascade-lin-ts", k=3, items=items)
    shown = service.recommend("shop")
    service.feedback("shop", shown.token, click=1)      # on the disk, and counted once, when this returns
"""

import hashlib
import logging
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from numpy.typing import ArrayLike

from firstclick.catalog.catalog import Subset
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.ids import ItemId, ids_to_find, item_ids
from firstclick.catalog.item import Item
from firstclick.click_models.click_fit import ClickFit
from firstclick.files.progress import Progress, silent
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.online.baseline import MAX_LOSS
from firstclick.online.explore import check_share
from firstclick.online.feedback import positions_of
from firstclick.online.item_counts import CountsByItem, counts_of
from firstclick.online.request import AtMost
from firstclick.policies.base import Policy
from firstclick.serve.log.events import (
    COUNTED_ITEM,
    KIND_OF,
    NONCE_SIZE,
    BaselineSet,
    Body,
    Build,
    Event,
    ItemsWithdrawn,
    ListRemoved,
    NewEvent,
    RolledBack,
    SettingsChanged,
    packed,
)
from firstclick.serve.log.token import SECRET_SIZE, KeyRing, Token, new_nonce, nonce_of_request, number_in
from firstclick.serve.log.tuning import DEFAULT, Clock, Tuning
from firstclick.serve.maintenance import Maintenance
from firstclick.serve.model.audit import Audit, audit_served
from firstclick.serve.model.build import this_build
from firstclick.serve.model.exploration import Exploration
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.feedback import check_not_archived, feedback_event, has_rows, outcomes, receipt
from firstclick.serve.model.fork import fork
from firstclick.serve.model.head_start import counts_body, warm_start_body
from firstclick.serve.model.model import Known, Model, Ranked
from firstclick.serve.model.new_events import (
    availability,
    baseline_set,
    check_name,
    first_event,
    items_changed,
    list_put,
    policy_of,
    withdrawn_ids,
)
from firstclick.serve.model.replay import catch_up, known_after
from firstclick.serve.model.trial import BASELINE, MODEL, OWN, POLICY, WORSE, Trial
from firstclick.serve.model.trial_events import (
    DEFAULT_ARMS,
    KEY_SIZE,
    TrialReport,
    check_word,
    policy_is_worse,
    trial_report,
    trial_shares,
    trial_started,
    trial_stopped,
)
from firstclick.serve.model_set import ModelSet
from firstclick.serve.no_clicks import NoClicks
from firstclick.serve.request_table import RequestTable, other_request
from firstclick.serve.store import open_store
from firstclick.serve.store.numbering import ModelGone
from firstclick.serve.store.store import Appended, Store, StoredModel
from firstclick.serve.trial_arms import arm_slate, assigned_in, check_arm, copies, model_of
from firstclick.serve.writer import Writer
from firstclick.trials.assignment import Unit, bucket_of
from firstclick.trials.tally import DEFAULT_STRETCH
from firstclick.validation.duration import check_wait
from firstclick.validation.lists import as_list
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Conflict, Malformed, Refused, Unavailable, Unknown, refusing
from firstclick.wire.feedback import ClickReport, Entry, Receipt, ServedSlate, report_of

log = logging.getLogger("firstclick.serve")

# Of a slate that belongs to no arm of the trial that runs.
NO_ARM = -1


class Service:
    """The models of one store, at work. `open_service` opens one.

    >>> from firstclick.serve import Item, open_service
    >>> with open_service("menu.db") as service:
    ...     _ = service.create("shop", policy="random", k=1, items=[Item("tea"), Item("milk")], seed=1)
    ...     print(service.model("shop").describe()["policy"])
    random

    A service is safe to use from several threads. Close it, or use it in a `with` block. Methods that change
    a model return the number of the event that their change has in the model's log. Refusals are errors of
    `firstclick.wire.errors`: `Malformed`, `Unknown`, `Conflict`, `Unavailable`, ...

    Args:
        store: An open store.
        token_days: Days for which feedback for a slate is accepted.
        max_batch: The largest number of events per commit.
        max_queue: How many events may wait for a commit; more are refused.
        snapshot_events: Write a snapshot after this many events.
        snapshot_seconds: Write a snapshot after this many seconds, if there were events.
        poll_seconds: How often to look for events that other processes wrote, in seconds.
        progress: Called as `progress(done, total)` while logs are read at the start.
        clock: Where the time comes from; the module `time` by default.
        tuning: Sizes and pauses that operators do not set.
    """

    def __init__(
        self,
        store: Store,
        *,
        token_days: float = 7.0,
        max_batch: int = 512,
        max_queue: int = 10_000,
        snapshot_events: int = 10_000,
        snapshot_seconds: float = 60.0,
        poll_seconds: float = 0.2,
        progress: Progress = silent,
        clock: Clock = time,
        tuning: Tuning = DEFAULT,
    ) -> None:
        self.store = store
        self.tuning = tuning
        self.clock = clock
        self.token_days = token_days
        self.started = self.clock.time()
        self.name = f"{os.uname().nodename if hasattr(os, 'uname') else 'host'}:{os.getpid()}"
        # A name that no other process has: those of a container may have its host name and number.
        self.process = f"{self.name}:{secrets.token_hex(4)}"
        self.outcomes: dict[str, Counter[str]] = {}
        self.recommended: Counter[str] = Counter()
        self.exploring: dict[str, Exploration] = {}
        self._counting = threading.Lock()
        # What a rollback goes back to, from when it is asked for until it is in the log.
        self._recalled: dict[tuple[int, int], Known] = {}
        self._requests = RequestTable(clock)
        self._builds_not_noted: set[int] = set()
        self.models = ModelSet(store, self._admit)
        if not store.token_keys():
            store.add_token_key(secrets.token_bytes(SECRET_SIZE), self.clock.time())
        self.keys = KeyRing(store.token_keys(), store.token_keys, clock)
        for stored in store.models():
            self.models.take_up(stored, progress)
        self.writer = Writer(store, self._fold, max_batch=max_batch, max_queue=max_queue, clock=clock)
        self.no_clicks = NoClicks(self)
        self.maintenance = Maintenance(
            self,
            poll_seconds=poll_seconds,
            snapshot_events=snapshot_events,
            snapshot_seconds=snapshot_seconds,
        )
        for name in self.names():
            self.note_build(self.model(name))

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting and close the store. A service that is killed loses nothing either."""
        self.no_clicks.close()
        self.maintenance.close()
        self.writer.close()
        self.store.close()

    def run_background(self) -> None:
        """Do once, in this thread, what is due in the background.

        Follow the store, load models, write snapshots that are due, rotate keys, remove what deleted models
        left, time out slates, count slates, stop trials. Threads do this all the time, unless
        `tuning.background_threads` is off.

        Raises:
            Unavailable: The store cannot be used now.
        """
        self.maintenance.run_due()
        self.no_clicks.look()

    # Models

    def names(self) -> list[str]:
        """The names of all models."""
        return self.models.names()

    def model(self, name: str) -> Model:
        """Find a model by name.

        Args:
            name: The model.

        Raises:
            Unknown: No model has this name.
            Unavailable: The model's log cannot be read now.
        """
        return self.models.find(name)

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a model: its settings and counts, and its state in this process.

        Beside what `GET /v1/models/NAME` returns: `digest`, the SHA-256 of all that the model has learned,
        equal in every process after the same event; `diverged`, a sentence for each time that the store lost
        events of its log; `snapshot`, the last event in the newest snapshot that this process wrote.

        Args:
            name: The model.
        """
        model = self.model(name)
        return model.describe() | {
            "digest": model.digest(),
            "diverged": [str(diverged) for diverged in self.models.set_backs.get(name, ())],
            "snapshot": self.maintenance.snapshot_seq(name),
        }

    def create(
        self,
        name: str,
        *,
        policy: Policy | str,
        k: int,
        items: Sequence[Item],
        seed: int | None = None,
        feature_names: Sequence[str] = (),
        scale: bool = True,
        encoder: Encoder | None = None,
        file_marks: Sequence[str] = (),
        explore: float = 0.0,
        baseline: Sequence[ItemId] = (),
        max_loss: float = MAX_LOSS,
        baseline_mark: str = "",
        no_click_after: float = 0.0,
    ) -> Model:
        """Create a model.

        Features may be lists of numbers, or values by column name, which an encoder turns into numbers.

        Args:
            name: The model.
            policy: A policy, or its description such as `"cascade-mixed"`.
            k: The length of a slate.
            items: The items of its catalog.
            seed: Decides what is explored; drawn at random by default.
            feature_names: Names of the features, if they are lists of numbers.
            scale: Scale features to the policy's prior: add a constant and divide by one number. `False`:
                keep them.
            encoder: Turns values by column name into features; fitted to these items by default.
            file_marks: Hashes of what a catalog file says of each item. `firstclick serve` uses them.
            explore: Share of slates drawn uniformly, from 0 to 1.
            baseline: The list that is shown today, best first; see `set_baseline`.
            max_loss: The largest share of the baseline's clicks that may be lost; 0.05 by default.
            baseline_mark: A hash of the file that the baseline came from. `firstclick serve` uses it.
            no_click_after: Seconds after which a slate without feedback counts as not clicked. 0: it teaches
                nothing.

        Returns:
            The new model.

        Raises:
            Conflict: A model of this name exists.
            Malformed: The policy does not fit the items, or a value breaks a rule.
        """
        body = first_event(
            name, policy=policy, k=k, items=items, seed=seed, feature_names=feature_names, scale=scale,
            encoder=encoder, file_marks=file_marks, explore=explore, no_click_after=no_click_after,
            baseline=baseline, max_loss=max_loss, baseline_mark=baseline_mark,
        )  # fmt: skip
        self.models.take_up(self.store.create(name, [self._event(body)]))
        return self.model(name)

    def audit(self, name: str) -> Audit:
        """Replay the model's whole log and compare the result with what is served.

        Args:
            name: The model.
        """
        return audit_served(self.store, self.model(name))

    def export(self, name: str) -> Iterator[bytes]:
        """Export the model's whole log, for `import_model` here or elsewhere.

        Args:
            name: The model.

        Returns:
            The file's content, piece by piece.

        Raises:
            Conflict: A part of the log is archived.
        """
        model = self.model(name)
        return export_model(self.store, StoredModel(model.id, name, model.seq))

    def import_model(self, name: str, content: bytes | BinaryIO) -> Model:
        """Create a model from an exported file.

        Args:
            name: The name of the new model.
            content: The file's bytes, or the open file, which must be seekable. It is read block by block.

        Raises:
            Malformed: The content is not an exported model.
            Conflict: A model of this name exists.
        """
        self.models.take_up(import_model(self.store, name, content))
        model = self.model(name)
        self.note_build(model)
        return model

    def fork(self, name: str, policy: Policy | str, new_name: str, *, seed: int | None = None) -> Model:
        """Create a new model from another one's log: the same items and slates, learned by another policy.

        Feedback for slates that the old model has shown still goes to the old model. A model that cannot be
        served, because another version of its policy has learned it, can be forked too.

        Args:
            name: The model to fork.
            policy: The new policy, or its description.
            new_name: The name of the new model.
            seed: Decides what the new model explores; drawn at random by default.

        Raises:
            Malformed: The policy cannot learn from this log.
            Conflict: A model of the new name exists, or a part of the log is archived.
        """
        found = [stored for stored in self.store.models() if stored.name == name]
        if not found:
            raise Unknown(f"{quoted(name)} is not in the store; GET /v1/models lists all models", "model")
        self.models.take_up(fork(self.store, self.store, found[0], new_name, policy, seed=seed).stored)
        model = self.model(new_name)
        self.note_build(model)
        return model

    def note_build(self, model: Model) -> None:
        """Have the log say what draws slates here, unless it does; tried again later if it cannot be now."""
        if model.build is not None:
            return
        body = this_build(type(model.engine.policy))
        # All processes of one build write one event.
        nonce = hashlib.blake2b(packed(body), digest_size=NONCE_SIZE).digest()
        event = NewEvent(KIND_OF[Build], nonce, packed(body), self.clock.time())
        try:
            self.append(model, event)
        except Refused as refusal:
            # It is tried again at every poll, and told once.
            if model.id not in self._builds_not_noted:
                log.warning("%s: the log does not say which build serves it: %s", model.name, refusal)
            self._builds_not_noted.add(model.id)

    def delete(self, name: str) -> int:
        """Delete a model and its log for good.

        Other processes stop serving it within `poll_seconds`. A later model of the same name refuses the
        tokens of this one.

        Args:
            name: The model.

        Returns:
            How many events it had. They are removed from the store in the background.

        Raises:
            Unknown: No model has this name.
            Conflict: The model is an arm of a running trial.
        """
        for model in self.models.all():
            if any(arm.name == name for arm in self._arms_of(model)):
                raise Conflict(
                    f"{name!r} is an arm of the trial that runs on {model.name!r}; stop that first", "model"
                )
        found = [stored for stored in self.store.models() if stored.name == name]
        if not found or not self.store.delete(found[0].id):
            raise Unknown(f"{quoted(name)} is not in the store; GET /v1/models lists all models", "model")
        self.forget(name, found[0].id)
        return found[0].head

    def forget(self, name: str, number: int) -> None:
        """Serve a model no more that is not in the store."""
        if self.models.drop(name, number):
            self.maintenance.forget(name)
            self.outcomes.pop(name, None)
            self.recommended.pop(name, None)
            self.no_clicks.forget(name)
            self.exploring.pop(name, None)
            self._requests.forget_model(number)

    def _admit(self, model: Model) -> None:
        model.clock = self.clock
        self.outcomes.setdefault(model.name, Counter())
        self.exploring[model.name] = Exploration()
        # Slates are open whoever has folded the log: one that was set back is folded anew.
        if (before := self.models.at_work(StoredModel(model.id, model.name, model.seq))) is not None:
            model.open = before.open

    # Recommendations

    def recommend(
        self,
        name: str,
        *,
        k: int | None = None,
        candidates: Iterable[ItemId] | Subset | str | None = None,
        exclude: Iterable[ItemId] | Subset | str = (),
        pinned: Mapping[int, ItemId] | None = None,
        request_id: str | None = None,
        context: ArrayLike | None = None,
        at_most: AtMost | None = None,
        features: ArrayLike | None = None,
        unit: Unit | None = None,
        explain: bool = False,
    ) -> ServedSlate:
        """Choose a slate to show, and sign the token to send back with the click. Nothing is written.

        Repeat a request with the same `request_id` within an hour, and this process returns the same slate
        and token. Another process, or this one after a restart, may choose another slate; the first feedback
        counts, whichever slate it names.

        Args:
            name: The model.
            k: The length of this slate, at most that of the model.
            candidates: Choose among these items only: ids, a subset, or the name of a list (`put_list`).
            exclude: Never show these items: ids, a subset, or the name of a list.
            pinned: Items with a fixed position, such as `{0: "tea"}`. A pinned item that is excluded or
                hidden is not shown; `skipped_pins` names it.
            request_id: Makes the request safe to repeat.
            context: Numbers that describe the user, for policies that use them.
            at_most: How many items of a group the slate may have: one number for every group, or `{group:
                number}`.
            features: One row per candidate, in place of the catalog's features.
            unit: The id of the user or visit. It decides the arm of a trial and is not stored.
            explain: Also say of each item whether the policy would show it without exploring.

        Returns:
            The slate, best item first.

        Raises:
            Unknown: No model has this name.
            Malformed: The request breaks a rule or names an unknown item or list, or the policy would learn
                wrongly from it.
            Conflict: The request id was used for another request.
        """
        model = self.model(name)
        if not isinstance(explain, bool):
            raise Malformed(f"must be True or False, got {quoted(explain)}", "explain")
        if request_id is not None:
            nonce = nonce_of_request(request_id)
            # They are looked at twice.
            candidates, exclude = _listed(candidates), _listed(exclude)
            asked = _packed_request(k, candidates, exclude, pinned, context, at_most, features, unit, explain)
            if (slate := self._answered_before(model, nonce, asked)) is not None:
                return slate
        issued_ms = int(self.clock.time() * 1000)
        with refusing:
            excluded = exclude if isinstance(exclude, str | Subset) else ids_to_find(exclude, "exclude")
        if unit is not None:
            with refusing:
                bucket_of(unit, bytes(KEY_SIZE))  # What is wrong with it is told before a trial starts.
        no_pins = isinstance(pinned, Mapping) and not pinned
        plain = k is None and candidates is None and excluded == [] and (pinned is None or no_pins)
        plain = plain and context is None and at_most is None and features is None and not explain
        decides = model.launch.decides
        if plain and request_id is None and not model.wants_context and not decides:
            number, ranked = model.next_slate()
            nonce = new_nonce(issued_ms, number)
        else:
            if request_id is None:
                nonce = new_nonce(issued_ms)
            request: dict[str, Any] = {
                "k": k, "candidates": candidates, "exclude": excluded, "pinned": pinned,
                "context": context, "at_most": at_most, "features": features, "explain": explain,
            }  # fmt: skip
            if decides:
                ranked = self._decided(model, nonce, issued_ms, unit, **request)
            else:
                ranked = model.recommend(number_in(nonce), **request)
        rows = ranked.rows.astype("<u4").tobytes()
        token = Token(model.id, issued_ms, nonce, rows, ranked.context, ranked.features, ranked.fields)
        self.recommended[name] += 1
        self.no_clicks.count(name, ranked.arm)
        exploring = self.exploring.get(name)
        # What others decided says nothing of the policy. Without a table it was deleted just now.
        if plain and set(ranked.reasons) == {POLICY} and not ranked.by_arm and exploring is not None:
            exploring.note(model, ranked.rows)
        slate = ServedSlate(
            ranked.items, ranked.scores, self.keys.sign(token), ranked.seq, ranked.skipped_pins,
            ranked.explored, ranked.not_evaluable, ranked.reasons, ranked.without_exploring,
        )  # fmt: skip
        if request_id is not None:
            kept = self._requests.keep(model.id, nonce, asked, slate)
            if kept is not slate:
                return kept
        if model.no_click_after and not decides:
            _keep_open(model, nonce, issued_ms, ranked)
        return slate

    def _decided(self, model: Model, nonce: bytes, issued_ms: int, unit: Unit | None, **asked: Any) -> Ranked:
        """A slate by whoever decides it: the policy, the baseline, or an arm of a trial. It is open."""
        launch, number = model.launch, number_in(nonce)
        replicas = model.live_replicas(self.clock.time(), self.process)
        # One slate after the other: the list and the trial must not change between the decision and the
        # slate, and the floor has to know what is out.
        with model.lock:
            with refusing:
                decision = launch.decide(number, unit, out=model.open.excess, replicas=replicas)
            arm = launch.arm_of(decision.assigned)
            by_list = decision.chosen is not None and not decision.chosen.by_policy
            if arm is None or arm.kind != MODEL or by_list:
                ranked = model.recommend(number, decision=decision, **asked)
                _keep_open(model, nonce, issued_ms, ranked)
                return ranked
        # Not under the lock: two models may be arms of one another.
        other = model_of(self.models.all(), arm)
        slate = None
        # An encoder of its own stands behind each model: features of a request are of one of them.
        if other is not None and asked["features"] is None:
            slate = arm_slate(model, other, number, decision, **asked)
        if slate is None:
            # It is this model's slate, which belongs to no arm.
            slate = model.recommend(number, decision=decision._replace(assigned=None), **asked)
            slate = slate._replace(arm=NO_ARM)
        _keep_open(model, nonce, issued_ms, slate)
        return slate

    def _answered_before(self, model: Model, nonce: bytes, asked: bytes) -> ServedSlate | None:
        """What was answered to the same request; Conflict if its id was another request's."""
        known = self._requests.find(model.id, nonce)
        if known is None:
            return None
        if known.asked != asked:
            raise other_request()
        if all(model.items.is_shown(item) for item in known.slate.items):
            return known.slate
        # What was withdrawn since is not shown again.
        self._requests.forget(model.id, nonce)
        return None

    # Feedback

    def feedback(
        self,
        name: str,
        slate: str | ServedSlate,
        click: int | NotGiven | None = NOT_GIVEN,
        *,
        clicks: Sequence[int] | None = None,
        examined: int | None = None,
    ) -> Receipt:
        """Report what was clicked. When this returns, the feedback is on disk and counted once.

        Give either `click` or `clicks`.

        Args:
            name: The model.
            slate: A slate from `recommend`, or its token.
            click: The position that was clicked first, from 0; None if nothing was clicked.
            clicks: All positions that were clicked, in any order.
            examined: How many positions from the top the user looked at, if the page knows.

        Raises:
            Conflict: Other feedback was reported for this slate before; the first one stays.
            Expired: The slate is older than `token_days`.
            Unknown: The token was not signed here, or was changed.
        """
        (outcome,) = self.feedback_batch(name, [ClickReport(slate, click, clicks, examined)])
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    def feedback_batch(self, name: str, entries: Sequence[Entry]) -> list[Receipt | Refused]:
        """Report feedback for many slates. Errors of single entries are returned, not raised.

        Args:
            name: The model.
            entries: `(slate, click)` pairs or `ClickReport`s.

        Returns:
            A receipt or an error for each entry, in order.
        """
        answer: Future[list[Receipt | Refused]] = Future()
        self.send_feedback(name, entries, answer.set_result)
        return answer.result()

    def send_feedback(
        self,
        name: str,
        entries: Sequence[Entry],
        done: Callable[[list[Receipt | Refused]], None],
    ) -> None:
        """As `feedback_batch`, without waiting: `done` is called later, by the writer's thread or at once."""
        model = self.model(name)
        with refusing:
            given = as_list("entries", entries, "pairs of slate and click, or of ClickReport")
        read = [self._read_feedback(model, entry) for entry in given]

        def finish(told: list[Receipt | Refused]) -> None:
            self.count(name, *(outcome.status for outcome in told))
            done(told)

        self._submit(model, read, finish)

    def _submit(
        self,
        model: Model,
        entries: Sequence[NewEvent | Receipt | Refused],
        finish: Callable[[list[Receipt | Refused]], None],
    ) -> None:
        """Write those that are events; then the corrections that come of them, if any."""
        events = [(model, entry) for entry in entries if isinstance(entry, NewEvent)]
        if not events:
            finish([entry for entry in entries if not isinstance(entry, NewEvent)])
            return

        def settle(appended: Sequence[Appended] | Refused) -> None:
            self._submit(model, outcomes(model, entries, appended), finish)

        self.write_with_copies(events, settle)

    def write_with_copies(
        self, events: Sequence[tuple[Model, NewEvent]], done: Callable[[Sequence[Appended] | Refused], None]
    ) -> None:
        """Have feedback written to the log of its model and, in one commit with it, to those of models that
        are arms of its trial; `done` hears what became of the first."""
        copied = [pair for model, event in events for pair in copies(self.models.all(), model, event)]

        def settle(appended: Sequence[Appended] | Refused) -> None:
            if isinstance(appended, ModelGone) and any(arm.id == appended.model for arm, _ in copied):
                # The trial goes on without an arm that is gone.
                copied[:] = [(arm, copy) for arm, copy in copied if arm.id != appended.model]
                self._write([*events, *copied], settle)
                return
            if isinstance(appended, Refused):
                done(appended)
                return
            for (arm, copy), place in zip(copied, appended[len(events) :], strict=True):
                # A click that comes late corrects what the arm has learned, too.
                told = receipt(arm, copy, place)
                if isinstance(told, NewEvent):
                    self._write([(arm, told)], partial(_tell_refused, arm))
            done(appended[: len(events)])

        self._write([*events, *copied], settle)

    def _write(
        self, events: Sequence[tuple[Model, NewEvent]], done: Callable[[Sequence[Appended] | Refused], None]
    ) -> None:
        try:
            self.writer.submit(events, done)
        except Refused as refusal:
            done(refusal)

    def count(self, name: str, *statuses: str) -> None:
        """Feedback with these outcomes; several threads count."""
        with self._counting:
            # A model may be deleted while its feedback is on the way.
            if (counted := self.outcomes.get(name)) is not None:
                counted.update(statuses)

    def _read_feedback(self, model: Model, entry: Entry) -> NewEvent | Refused:
        try:
            with refusing:
                said = report_of(entry)
                clicks = positions_of(said.click, said.clicks)
                read = self.keys.read(said.token(), model.id, days=self.token_days)
                check_not_archived(model, read)
                # Another process may have put an item just now, and shown it.
                if self.store.shared:
                    if not has_rows(model, read):
                        catch_up(self.store, model)
                    self._follow_trial(model, read)
                return feedback_event(model, read, said, clicks, self.clock.time())
        except Refused as refusal:
            return refusal

    def _follow_trial(self, model: Model, token: Token) -> None:
        """Another process may have started the trial just now that the slate is of, or made its models."""
        assigned = assigned_in(token.fields)
        if assigned is None:
            return
        if model.launch.trial is None or model.launch.trial.id != assigned.trial:
            catch_up(self.store, model)
        trial = model.launch.trial
        if trial is None or trial.id != assigned.trial:
            return
        served = self.models.all()
        missing = {arm.model for arm in trial.arms if arm.kind == MODEL and model_of(served, arm) is None}
        for stored in self.store.models() if missing else ():
            if stored.name in missing:
                self.models.take_up(stored)

    # Changes

    def put_items(self, name: str, items: Sequence[Item], *, file_marks: Sequence[str] = ()) -> int:
        """Add or change items. Fields that are not given, and what was learned, stay as they are.

        Args:
            name: The model.
            items: The items.
            file_marks: Hashes of what a catalog file says of each item. `firstclick serve` uses them.
        """
        return self.change_items(name, put=items, file_marks=file_marks)

    def withdraw_items(self, name: str, ids: Sequence[ItemId]) -> int:
        """Take items out of the catalog. Feedback for slates that show them still counts.

        Args:
            name: The model.
            ids: Ids of items in the catalog.

        Raises:
            Unknown: The catalog never had an item.
        """
        return self.change_items(name, withdraw=ids)

    def set_available(self, name: str, *, on: Sequence[ItemId] = (), off: Sequence[ItemId] = ()) -> int:
        """Mark items as in stock or sold out, until it is set again.

        Putting an item without `available`, and a rollback, leave the mark as it is.

        Args:
            name: The model.
            on: Items that may be shown.
            off: Items that may not.

        Raises:
            Unknown: The catalog never had an item.
        """
        model = self.model(name)
        with refusing:
            on, off = item_ids(on, "on"), item_ids(off, "off")
        place = self._set_available(model, on, off)
        self._tell_arms(model, lambda arm: self._set_available(arm, on, off))
        return place

    def _set_available(self, model: Model, on: Sequence[ItemId], off: Sequence[ItemId]) -> int:
        self._look_for(model, on, off)
        return self._change(model, availability(model, on, off))

    def put_list(self, name: str, list_name: str, items: Sequence[ItemId]) -> int:
        """Store a list of items that requests can name in place of ids.

        It keeps requests with many candidates short, and their log events too.

        Args:
            name: The model.
            list_name: The name of the list. An older list of this name is replaced.
            items: Ids of items in the catalog.
        """
        model = self.model(name)
        self._look_for(model, items)
        return self._change(model, list_put(model, list_name, items))

    def remove_list(self, name: str, list_name: str) -> int:
        """Remove a list. Its items stay in the catalog.

        Args:
            name: The model.
            list_name: The name of the list.

        Raises:
            Unknown: No list has this name.
        """
        model = self.model(name)
        check_name(list_name, "list_name")
        if list_name not in model.items.lists:
            raise Unknown(f"must be a list of model {name!r}, got {quoted(list_name)}", "list_name")
        return self._change(model, ListRemoved(str(list_name)))

    def set_explore(self, name: str, share: float) -> int:
        """Set the share of slates that are drawn uniformly.

        Args:
            name: The model.
            share: From 0 to 1.
        """
        return self.change_settings(name, explore=share)

    def set_no_click_after(self, name: str, seconds: float) -> int:
        """Count a slate as not clicked if no feedback comes in time.

        Args:
            name: The model.
            seconds: How long to wait. 0: slates without feedback teach nothing.
        """
        return self.change_settings(name, no_click_after=seconds)

    def change_settings(
        self, name: str, *, explore: float | None = None, no_click_after: float | None = None
    ) -> int:
        """Change several settings at once. What is not given stays as it is.

        Args:
            name: The model.
            explore: Share of slates drawn uniformly, from 0 to 1.
            no_click_after: Seconds after which a slate without feedback counts as not clicked; 0 for never.
        """
        model = self.model(name)
        with refusing:
            body = SettingsChanged(
                None if explore is None else check_share(explore, model.engine.policy),
                None if no_click_after is None else check_wait(no_click_after),
            )
        if body == SettingsChanged():
            raise Malformed("must be given, or no_click_after, or both; got neither", "explore")
        if explore is not None:
            model.warm_up_exploration()
        if no_click_after:
            model.warm_up_corrections()
        return self._change(model, body)

    def set_baseline(
        self, name: str, items: Sequence[ItemId], max_loss: float = MAX_LOSS, *, file_mark: str = ""
    ) -> int:
        """Set the list that is shown today. The policy starts beside it.

        With 95 % confidence, at all times, the expected clicks of all slates so far are at least 1 -
        `max_loss` of what the list would have got on the same pages. A new list starts this over.

        Args:
            name: The model.
            items: The list, best first.
            max_loss: The largest share of the list's clicks that may be lost; 0.05 by default.
            file_mark: A hash of the file that the list came from. `firstclick serve` uses it.

        Raises:
            Conflict: A running trial compares with the present list.
        """
        model = self.model(name)
        self._look_for(model, items)
        body = baseline_set(model, items, max_loss, file_mark)
        trial, listed = model.launch.running, model.launch.baseline
        if trial is not None and listed is not None and listed.items != tuple(body.items):
            raise Conflict(
                f"must stay while a trial on model {name!r} compares with it; stop the trial first",
                "baseline",
            )
        return self._change(model, body)

    def warm_start(
        self,
        name: str,
        log: Iterable[Mapping[str, Any]] | ClickFit = (),
        *,
        counts: CountsByItem | None = None,
        weight: float | None = None,
        file_mark: str = "",
    ) -> tuple[int, int]:
        """Learn from slates that another system has shown, as a head start: from all of them, or from none.

        Args:
            name: The model.
            log: Dicts with `items`, and `click` or `clicks`, or a fitted click model; see
                `Ranker.warm_start`.
            counts: In place of a log: the looks and clicks of each item.
            weight: How much an observation counts, above 0 and at most 1; see `Ranker.warm_start`.
            file_mark: A hash of the log. A log with the same hash is learned once, even by several processes.

        Returns:
            The number of the event in the model's log, and how many slates, or items, were used.
        """
        model = self.model(name)
        if isinstance(log, ClickFit):
            body = counts_body(model.engine, counts_of(log), weight, lock=model.lock, file_mark=file_mark)
        elif counts is not None:
            body = counts_body(model.engine, counts, weight, lock=model.lock, file_mark=file_mark)
        else:
            body = warm_start_body(model.engine, log, weight, lock=model.lock, file_mark=file_mark)
        event = self._event(body)
        if file_mark:
            event = event._replace(nonce=hashlib.blake2b(file_mark.encode(), digest_size=NONCE_SIZE).digest())
        return self.append(model, event), body.slates or len(body.counts) // COUNTED_ITEM.itemsize

    def remove_baseline(self, name: str) -> int:
        """Remove the baseline: the policy decides every slate.

        Args:
            name: The model.

        Raises:
            Unknown: The model has no baseline.
            Conflict: A running trial compares with it.
        """
        model = self.model(name)
        if model.launch.baseline is None:
            raise Unknown(f"is missing: model {name!r} has none", "baseline")
        trial = model.launch.running
        if trial is not None and any(arm.kind == BASELINE for arm in trial.arms):
            raise Conflict(
                f"must stay while a trial on model {name!r} compares with it; stop the trial first",
                "baseline",
            )
        return self._change(model, BaselineSet([], MAX_LOSS))

    # Trials

    def start_trial(
        self,
        name: str,
        arms: Mapping[str, float] | None = None,
        *,
        learn_from: str = OWN,
        stop_if_worse: bool = False,
        last_pages: int = DEFAULT_STRETCH,
    ) -> int:
        """Start a trial: compare arms on live requests.

        An arm is `"policy"` or `"baseline"` of this model, `"model:NAME"` for another model with the same
        items, or `"policy:SPEC"` for another policy, which starts from a fork of this model.

        Args:
            name: The model.
            arms: The share of each arm; 90 % policy and 10 % baseline by default.
            learn_from: `"own"`: an arm learns from its own slates and the baseline's. `"all"`: from all
                slates.
            stop_if_worse: Show the baseline as soon as the policy is worse.
            last_pages: How many pages the second figure of the report covers; 10,000 by default.

        Raises:
            Conflict: A trial is running already.
            Malformed: The model has no baseline to compare with, or the arms are wrong.
        """
        model = self.model(name)
        for other in self.models.all():
            if model in self._arms_of(other):
                raise Conflict(
                    f"{name!r} is an arm of the trial that runs on {other.name!r}; stop that first", "model"
                )
        body = trial_started(
            model, DEFAULT_ARMS if arms is None else arms, self._arm_model, learn_from=learn_from,
            stop_if_worse=stop_if_worse, last_pages=last_pages,
        )  # fmt: skip
        place = self._change(model, body)
        if model.launch.trial is not None and model.launch.trial.seq < place:
            raise Conflict(f"{name!r} has another trial, started at the same time; see its report", "model")
        return place

    def _arm_model(self, model: Model, kind: str, given: str) -> Model:
        """The other model that decides an arm: the one of this name, or a fork with this policy."""
        if kind == MODEL:
            other = self.model(given)
            check_arm(model, other)
            return other
        fork = f"{model.name}.{policy_of(given).name}"
        if fork in self.names():
            raise Conflict(
                f"need a new model {fork!r}, and there is one already, perhaps of an earlier trial; use "
                f"'model:{fork}' as an arm, or delete it",
                "arms",
            )
        return self.fork(model.name, given, fork)

    def change_trial_shares(self, name: str, arms: Mapping[str, float]) -> int:
        """Change the shares of all arms. A new period of the trial starts.

        Args:
            name: The model.
            arms: The share of each arm; together 1.
        """
        model = self.model(name)
        return self._change(model, trial_shares(self._running_trial(model), arms))

    def stop_trial(self, name: str, *, show: str = POLICY) -> int:
        """End the trial. After a trial has ended, this changes who decides the slates.

        Args:
            name: The model.
            show: Who decides slates from now on: `"policy"` or `"baseline"`.
        """
        model = self.model(name)
        check_word("show", show, (POLICY, BASELINE))
        trial = model.launch.trial
        # One that is over may be asked to show the other.
        if trial is None or (trial.stopped is not None and trial.stopped.show == show):
            trial = self._running_trial(model)
        return self._change(model, trial_stopped(model, trial, show))

    def trial_report(self, name: str) -> TrialReport:
        """What the trial shows so far, or showed when it ended.

        Args:
            name: The model.

        Raises:
            Unknown: The model had no trial.
        """
        return trial_report(self.model(name))

    def stop_if_worse(self, model: Model) -> None:
        """Stop the model's trial if it was asked to stop when the policy is worse, and it is."""
        trial = model.launch.running
        if trial is None or not trial.body.stop_if_worse or model.launch.baseline is None:
            return
        with model.lock:
            worse = policy_is_worse(trial)
        if worse:
            body = trial_stopped(model, trial, BASELINE, WORSE)
            # All processes write one event.
            nonce = hashlib.blake2b(trial.body.key + b"worse", digest_size=NONCE_SIZE).digest()
            self.append(model, NewEvent(KIND_OF[type(body)], nonce, packed(body), self.clock.time()))
            log.warning("%s: the policy is worse than the baseline, which is shown from now on", model.name)

    def _running_trial(self, model: Model) -> Trial:
        if model.launch.running is None:
            raise Unknown(
                f"{model.name!r} has no running trial; POST /v1/models/{model.name}/trial starts one", "model"
            )
        return model.launch.running

    def _look_for(self, model: Model, *lists: object) -> None:
        """Another process may have put an item just now."""
        if not self.store.shared:
            return
        ids = chain.from_iterable(ids for ids in lists if isinstance(ids, Collection))
        if any(item not in model.items.names for item in ids if isinstance(item, str | int)):
            catch_up(self.store, model)

    def change_items(
        self,
        name: str,
        *,
        put: Sequence[Item] = (),
        withdraw: Sequence[ItemId] = (),
        file_marks: Sequence[str] = (),
    ) -> int:
        """Put and withdraw items at once: all of it, or nothing.

        Args:
            name: The model.
            put: Items to add or change.
            withdraw: Ids of items to take out of the catalog.
            file_marks: Hashes of what a catalog file says of each item. `firstclick serve` uses them.
        """
        model = self.model(name)
        with refusing:
            put, withdraw = as_list("put", put, "items"), item_ids(withdraw, "withdraw")
        if not put and not withdraw:
            raise Malformed("must have items, or `withdraw` must, got none", "put")
        place = self._change_items(model, put, withdraw, file_marks)
        self._tell_arms(model, lambda arm: self._change_items(arm, put, withdraw))
        return place

    def _change_items(
        self, model: Model, put: Sequence[Item], withdraw: Sequence[ItemId], file_marks: Sequence[str] = ()
    ) -> int:
        bodies: list[Body] = [items_changed(model, put, file_marks)] if put else []
        if withdraw:
            self._look_for(model, withdraw)
            bodies.append(ItemsWithdrawn(withdrawn_ids(model, withdraw, {item.id for item in put})))
        return self._change(model, *bodies)

    def _tell_arms(self, model: Model, change: Callable[[Model], object]) -> None:
        """Change the items of models that are arms of the running trial too: an arm has the same items."""
        for arm in self._arms_of(model):
            try:
                change(arm)
            except Refused as refusal:
                log.warning("%s: its arm %s was not told of a change: %s", model.name, arm.name, refusal)

    def _arms_of(self, model: Model) -> list[Model]:
        """The other models that are arms of the model's running trial."""
        trial = model.launch.running
        found = [] if trial is None else [model_of(self.models.all(), arm) for arm in trial.arms]
        return [arm for arm in found if arm is not None]

    def roll_back(self, name: str, seq: int) -> int:
        """Roll the model back to an event. The log keeps everything that came since.

        Args:
            name: The model.
            seq: The number of the event, from 1.

        Raises:
            Malformed: There is no such event, or it is archived.
        """
        model = self.model(name)
        if type(seq) is not int or not 1 <= seq <= model.seq:
            raise Malformed(
                f"must be a whole number from 1 to {model.seq}, the last event, got {quoted(seq)}", "seq"
            )
        if 1 < seq < model.archived_before:
            raise Malformed(
                f"must be 1, or from {model.archived_before} to {model.seq}, got {seq}: the events between "
                "are archived",
                "seq",
            )
        # Folded here and not by the writer, for whom everybody waits.
        self._recalled[model.id, seq] = known_after(self.store, model, seq)
        try:
            return self._change(model, RolledBack(seq))
        finally:
            self._recalled.pop((model.id, seq), None)

    def _change(self, model: Model, *bodies: Body) -> int:
        return self.append(model, *map(self._event, bodies))

    def _event(self, body: Body) -> NewEvent:
        now = self.clock.time()
        return NewEvent(KIND_OF[type(body)], new_nonce(int(now * 1000)), packed(body), now)

    def append(self, model: Model, *events: NewEvent) -> int:
        """Write these to the model's log, and wait until they are learned; where the last one stands."""
        answer: Future[Sequence[Appended] | Refused] = Future()
        self.writer.submit([(model, event) for event in events], answer.set_result)
        appended = answer.result()
        if isinstance(appended, Refused):
            raise appended
        if model.seq < appended[-1].seq:
            raise Unavailable(
                f"the change is in the log as event {appended[-1].seq}, but model {model.name!r} has not "
                "followed yet: what it shows is older; send the same again"
            )
        return appended[-1].seq

    def _fold(self, model: Model, events: Sequence[Event], last: int) -> None:
        """Learn from events that are in the log now, and from all others up to `last`."""
        if events:
            catch_up(self.store, model, events[0].seq - 1)
            model.apply(events, lambda seq: self._known(model, seq))
        catch_up(self.store, model, last)

    def _known(self, model: Model, seq: int) -> Known:
        return self._recalled.get((model.id, seq)) or known_after(self.store, model, seq)


def _tell_refused(arm: Model, appended: Sequence[Appended] | Refused) -> None:
    if isinstance(appended, Refused):
        log.warning("%s: a late click on a slate of a trial was not learned: %s", arm.name, appended)


def _keep_open(model: Model, nonce: bytes, issued_ms: int, ranked: Ranked) -> None:
    """The slate is open until its feedback is folded, or its time has passed."""
    if model.no_click_after or ranked.chosen is not None:
        model.open.add(
            nonce, issued_ms, ranked.rows.astype("<u4").tobytes(), ranked.context, ranked.features,
            ranked.fields, excess=model.launch.taken(ranked.chosen),
        )  # fmt: skip


def _listed(items: Any) -> Any:
    """What can be gone through once only, as a list."""
    return list(items) if isinstance(items, Iterator) else items


def _packed_request(*parts: object) -> bytes:
    """Equal for requests that say the same in the same order."""

    def plain(part: Any) -> Any:
        return part.tolist() if hasattr(part, "tolist") else list(part)

    try:
        content = msgspec.msgpack.encode(parts, enc_hook=plain, order="deterministic")
    except (OverflowError, TypeError, ValueError):
        content = repr(parts).encode("utf-8", "replace")  # It will be refused for what it says.
    return hashlib.blake2b(content, digest_size=16).digest()


def open_service(
    store: str | Path | Store,
    *,
    relaxed: bool = False,
    clock: Clock = time,
    tuning: Tuning = DEFAULT,
    **settings: Any,
) -> Service:
    """Open a store and serve its models in this process.

    >>> from firstclick.serve import Item
    >>> with open_service("shop.db") as service:
    ...     _ = service.create("shop", policy="random", k=2, items=[Item("tea"), Item("milk")], seed=1)
    ...     slate = service.recommend("shop")
    ...     print([service.feedback("shop", slate.token, 0).status for _ in range(2)])
    ['accepted', 'duplicate']

    Args:
        store: An SQLite file, which is created if it does not exist, or `postgresql://...`; or an open store.
        relaxed: Trust the computer not to lose power: what was committed last may be lost then.
        clock: Where the time comes from; the module `time` by default.
        tuning: Sizes and pauses that operators do not set.
        **settings: Keyword arguments of `Service`, such as `token_days`.
    """
    if not isinstance(store, Store):
        store = open_store(store, relaxed=relaxed, tuning=tuning, clock=clock)
    try:
        return Service(store, clock=clock, tuning=tuning, **settings)
    except BaseException:
        store.close()
        raise

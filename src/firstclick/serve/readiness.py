"""Whether requests can be sent to this process: for slates, and for feedback.

Slates need what was learned, feedback a store that can be written. A load balancer that asks for each apart
goes on with slates while the database is away.
"""

from firstclick.serve.service import Service
from firstclick.wire.errors import Unavailable


def why_not_recommend(service: Service, max_lag: float) -> Unavailable | None:
    """Why no slates should be asked for here, or None."""
    maintenance = service.maintenance
    if (refusal := _neither(service)) is not None or maintenance.silence() > max_lag:
        # Nobody can be further on than the last contact with the store.
        return refusal
    for name in service.names():
        if (behind := maintenance.behind(name)) > max_lag:
            return Unavailable(
                f"model {name!r} is {behind:.1f} s behind its log, and may be {max_lag:g} s; ask another "
                "replica",
                reason="behind",
            )
    return None


def why_not_feedback(service: Service, max_lag: float) -> Unavailable | None:
    """Why no feedback should be sent here, or None."""
    if (refusal := _neither(service) or service.writer.trouble) is not None:
        return refusal
    if (silence := service.maintenance.silence()) > max_lag:
        return Unavailable(f"the store has not answered for {silence:.1f} s", reason="no-database")
    for model in service.models.all():
        if model.set_back:
            return Unavailable(model.set_back, reason="set-back")
    return None


def _neither(service: Service) -> Unavailable | None:
    if service.writer.broken is not None:
        return Unavailable(
            "the store must not be written to any more; restart the server, and see its log", reason="broken"
        )
    if service.models.broken and not service.names():
        name, why = next(iter(service.models.broken.items()))
        return Unavailable(f"model {name!r} cannot be served: {why}", reason="not-served")
    return None

"""The endpoint for AWS clients, put together from the settings."""

from collections.abc import Callable, Mapping

from steward.api.audit import Audit
from steward.api.auth import Gatekeeper
from steward.api.identify import Door
from steward.api.json11.route import Handler, Json11
from steward.api.json11.service import load
from steward.api.limits import Limits, Rate, Replays
from steward.api.sigv4 import Sigv4
from steward.head import choose
from steward.model.events import Event
from steward.model.settings import Settings
from steward.model.settings.sections import ApiSettings
from steward.ports import Clock, Permanent


def endpoint(
    settings: Settings,
    *,
    gatekeeper: Gatekeeper,
    clock: Clock,
    tell: Callable[[Event], None],
    handlers: Mapping[str, Handler],
    first_use: Callable[[str, float], bool],
) -> Json11:
    """`handlers` by the operation's name; one that has none is unknown. `first_use` is the
    store's. Raises Permanent for wrong keys or botocore."""
    api = settings.api
    try:
        service = load()
    except LookupError as error:
        raise Permanent(str(error)) from error
    signatures = Sigv4(key_of=choose.access_keys(settings), region=api.region, skew_s=api.clock_skew_s, now=clock.now)
    return Json11(
        service=service,
        door=Door(gatekeeper, signatures),
        limits=limits(api, clock.now),
        replays=Replays(skew_s=api.clock_skew_s, now=clock.now, first_use=first_use),
        audit=Audit(tell=tell, now=clock.now),
        handlers=handlers,
        max_body_bytes=api.max_body_kib * 1024,
    )


def limits(api: ApiSettings, now: Callable[[], float]) -> Limits:
    """How often one caller may call."""
    return Limits(
        reads=Rate(per_s=api.reads_per_s, burst=api.read_burst_count),
        writes=Rate(per_s=api.writes_per_s, burst=api.write_burst_count),
        now=now,
    )

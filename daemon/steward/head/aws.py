"""Build the endpoint for AWS clients from the settings. Imported at the first AWS call (api/late.py)."""

from collections.abc import Callable, Mapping

from steward.api.admission import Replays, call_limits
from steward.api.auth import Gatekeeper
from steward.api.identify import Authenticator, KeyOf, Sigv4
from steward.api.json11.route import Audit, Json11
from steward.api.json11.service import load
from steward.api.operations.sight import Handler
from steward.model.events import Event
from steward.model.settings.sections import ApiSettings
from steward.ports import Clock, Permanent

CLOCK_SKEW_S = 300.0
"""How far the time of a signed request may be from the head's, as at AWS."""
MAX_BODY_BYTES = 1 << 20


def endpoint(
    api: ApiSettings,
    *,
    key_of: KeyOf,
    gatekeeper: Gatekeeper,
    clock: Clock,
    tell: Callable[[Event], None],
    handlers: Mapping[str, Handler],
    first_use: Callable[[str, float], bool],
) -> Json11:
    """Return the endpoint. Raises Permanent for an unsuitable botocore.

    `handlers` are by the operation's name; other operations are unknown. `key_of` finds an access key by its id.
    `first_use` notes a signature in the store, and returns whether it was new.
    """
    try:
        service = load()
    except LookupError as error:
        raise Permanent(str(error)) from error
    signatures = Sigv4(key_of=key_of, region=api.region, skew_s=CLOCK_SKEW_S, now=clock.now)
    return Json11(
        service=service,
        door=Authenticator(gatekeeper, signatures),
        limits=call_limits(api, clock.now),
        replays=Replays(skew_s=CLOCK_SKEW_S, now=clock.now, first_use=first_use),
        audit=Audit(tell=tell, now=clock.now),
        handlers=handlers,
        max_body_bytes=MAX_BODY_BYTES,
    )

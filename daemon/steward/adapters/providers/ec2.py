"""Provider of Amazon EC2: RunInstances with a client token. Tags name the cluster, group and node of an instance.

EC2 itself keeps the only record. A launch first looks for an instance with the token's tag, because a client token is
tied to one type and subnet, and a launch may try several. The client token covers instances whose tags EC2 does not
show yet.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config

from steward.adapters.process import show
from steward.adapters.providers.ec2_errors import Ec2Refusal, Ec2RefusalKind, refusals
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.settings.clouds import Ec2ProviderSettings as Ec2Settings
from steward.model.settings.clouds import Market
from steward.ports import Permanent, Retryable

# The arguments of RunInstances for a slot: pure, so that they can be tested without EC2.

CLUSTER = "steward:cluster"
GROUP = "steward:group"
NODE = "steward:node"
TOKEN = "steward:token"
REBOOT = "steward:reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One type and subnet to try. An empty field leaves the choice to the launch template, or to EC2."""

    type: str
    subnet: str

    def __str__(self) -> str:
        return " in ".join(word for word in (self.type or "the template's type", self.subnet) if word)


def offers(settings: Ec2Settings, slot: Slot) -> Iterator[Offer]:
    """Yield every acceptable type in every subnet, the preferred type first."""
    for each in slot.types or settings.types or ("",):
        for subnet in settings.subnets or ("",):
            yield Offer(type=each.removeprefix("ml."), subnet=subnet)


def request(settings: Ec2Settings, slot: Slot, token: str, offer: Offer) -> Mapping[str, Any]:
    """Return the arguments of RunInstances."""
    words: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": _tag_words(settings, slot, token),
        "ImageId": slot.image or settings.image,
        "InstanceType": offer.type,
        "SubnetId": offer.subnet,
        "SecurityGroupIds": list(settings.security_groups),
        "KeyName": settings.key_name,
        "UserData": user_data(settings, slot),
    }
    if settings.launch_template:
        kind = "LaunchTemplateId" if settings.launch_template.startswith("lt-") else "LaunchTemplateName"
        words["LaunchTemplate"] = {kind: settings.launch_template, "Version": settings.template_version}
    if settings.instance_profile:
        kind = "Arn" if settings.instance_profile.startswith("arn:") else "Name"
        words["IamInstanceProfile"] = {kind: settings.instance_profile}
    if settings.market is Market.SPOT:
        one_time = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        words["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": one_time}
    said = {name: word for name, word in words.items() if word}
    # EC2 refuses a client token that comes with other arguments than before: so the token is made from them.
    return said | {"ClientToken": hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()}


def user_data(settings: Ec2Settings, slot: Slot) -> str:
    """Return the site's user data with `{node}` and the like filled in; other braces stay."""
    text = settings.user_data
    words = {
        "node": slot.node,
        "group": slot.group,
        "role": slot.role,
        "features": ",".join(sorted(slot.features)),
        "head": settings.head,
        "cluster": settings.cluster,
    }
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _tag_words(settings: Ec2Settings, slot: Slot, token: str) -> list[Mapping[str, Any]]:
    ours = {CLUSTER: settings.cluster, GROUP: slot.group, NODE: slot.node, TOKEN: token}
    tags = [{"Key": key, "Value": value} for key, value in ({"Name": slot.node} | settings.tags | ours).items()]
    spot = ["spot-instances-request"] if settings.market is Market.SPOT else []
    return [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", *spot)]


_TRIES = 3
_CONNECTIONS = 16
_PAGE = 500
_STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "stopping": InstanceState.STOPPED,
    "stopped": InstanceState.STOPPED,
    "shutting-down": InstanceState.GONE,
    "terminated": InstanceState.GONE,
}
_NEXT_OFFER = (Ec2RefusalKind.CAPACITY, Ec2RefusalKind.QUOTA, Ec2RefusalKind.NOT_OFFERED)
"""Refusals that concern one type or subnet: another one may be available."""
_REQUESTED_ENDS = ("Client.UserInitiatedShutdown", "")
"""EC2's reason codes for an end that was requested."""
_RECLAIMED = ["marked-for-termination", "marked-for-stop"]
"""The status codes of spot requests whose instances EC2 is about to reclaim."""


class Ec2Provider:
    """ProviderPort on EC2. Safe to call from several threads and processes. `page` is the size of a list's page."""

    def __init__(self, settings: Ec2Settings, page: int = _PAGE) -> None:
        self._settings = settings
        self._page = page
        self._made: set[InstanceId] = set()
        """The instances that this process launched, which can be ended before EC2's lists show them."""
        self._ec2 = boto3.session.Session().client(
            "ec2",
            region_name=settings.region,
            endpoint_url=settings.endpoint or None,
            config=Config(
                connect_timeout=settings.timeout_s,
                read_timeout=settings.timeout_s,
                max_pool_connections=_CONNECTIONS,
                retries={"mode": "standard", "total_max_attempts": _TRIES},
            ),
        )

    def describe(self) -> str:
        made_from = self._settings.launch_template or self._settings.image
        return f"ec2: {self._settings.market.value} instances of {made_from} in {self._settings.region}"

    def instances(self) -> Mapping[InstanceId, Instance]:
        try:
            entries = list(self._describe_instances())
            found = {each.id: each for each in map(_instance, entries)}
            spot = frozenset(
                InstanceId(each["InstanceId"]) for each in entries if each.get("InstanceLifecycle") == "spot"
            )
            return found | {each.id: each for each in self._interrupted(found, spot)}
        except Ec2Refusal as refused:
            raise Retryable(str(refused.as_port_error("list the instances"))) from refused

    def launch(self, slot: Slot, token: str) -> Instance:
        try:
            known = self._instance_of_token(token)
            return known or self._first_offer(slot, token)
        except Ec2Refusal as refused:
            raise refused.as_port_error(f"launch {slot.node}") from refused

    def terminate(self, instance: InstanceId) -> None:
        try:
            if instance in self._made or self._is_ours(instance):
                with refusals():
                    self._ec2.terminate_instances(InstanceIds=[instance])
            self._made.discard(instance)
        except Ec2Refusal as refused:
            if refused.kind is not Ec2RefusalKind.GONE:
                raise refused.as_port_error(f"terminate {instance}") from refused

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reboot the instance, at most once for each token, which a tag notes first; a refusal removes the tag."""
        try:
            machine = next(self._describe_instances({"instance-id": instance}), None)
            if machine is None or _instance(machine).state is InstanceState.GONE:
                raise Permanent(f"ec2: no instance {instance} of cluster {self._settings.cluster} to reboot")
            if _tags(machine).get(REBOOT) != token:
                self._reboot(instance, token)
        except Ec2Refusal as refused:
            raise refused.as_port_error(f"reboot {instance}") from refused

    def _reboot(self, instance: InstanceId, token: str) -> None:
        with refusals():
            self._ec2.create_tags(Resources=[instance], Tags=[{"Key": REBOOT, "Value": token}])
        try:
            with refusals():
                self._ec2.reboot_instances(InstanceIds=[instance])
        except Ec2Refusal as refused:
            if refused.is_undone:
                with refusals():
                    self._ec2.delete_tags(Resources=[instance], Tags=[{"Key": REBOOT}])
            raise

    def _first_offer(self, slot: Slot, token: str) -> Instance:
        """Launch with the first type and subnet that EC2 grants. Raises one refusal for all if there is none."""
        refusals_met: list[tuple[Offer, Ec2Refusal]] = []
        for offer in offers(self._settings, slot):
            try:
                return self._run_instances(slot, token, offer)
            except Ec2Refusal as refused:
                if refused.kind not in _NEXT_OFFER:
                    raise
                refusals_met.append((offer, refused))
        raise _all_refused(refusals_met)

    def _run_instances(self, slot: Slot, token: str, offer: Offer) -> Instance:
        with refusals():
            answer = self._ec2.run_instances(**request(self._settings, slot, token, offer))
        made = _instance(answer["Instances"][0])
        self._made.add(made.id)
        return made

    def _instance_of_token(self, token: str) -> Instance | None:
        """Return the instance of this token, a live one if there is any; None if there is none."""
        found = [_instance(each) for each in self._describe_instances({f"tag:{TOKEN}": token})]
        return min(found, key=lambda each: (each.state.is_dead, each.id), default=None)

    def _is_ours(self, instance: InstanceId) -> bool:
        return next(self._describe_instances({"instance-id": instance}), None) is not None

    def _describe_instances(self, more: Mapping[str, str] | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield every instance of this cluster, page by page."""
        words = {f"tag:{CLUSTER}": self._settings.cluster, **(more or {})}
        filters = [{"Name": name, "Values": [value]} for name, value in words.items()]
        with refusals():
            pages = self._ec2.get_paginator("describe_instances").paginate(
                Filters=filters, PaginationConfig={"PageSize": self._page}
            )
            for page in pages:
                if "Reservations" not in page:
                    raise Ec2Refusal(Ec2RefusalKind.PASSING, "", "EC2 answered without a list of instances")
                for reservation in page["Reservations"]:
                    yield from reservation["Instances"]

    def _interrupted(self, found: Mapping[InstanceId, Instance], spot: frozenset[InstanceId]) -> Iterator[Instance]:
        """Yield the spot instances that EC2 is about to reclaim; ask EC2 only if there are spot instances."""
        if not spot:
            return
        words = [(f"tag:{CLUSTER}", [self._settings.cluster]), ("status-code", _RECLAIMED)]
        filters = [{"Name": name, "Values": values} for name, values in words]
        with refusals():
            pages = self._ec2.get_paginator("describe_spot_instance_requests").paginate(Filters=filters)
            for wish in (wish for page in pages for wish in page["SpotInstanceRequests"]):
                instance = found.get(InstanceId(wish.get("InstanceId", "")))
                if instance is not None and instance.state is not InstanceState.GONE:
                    status = wish["Status"]
                    yield replace(instance, interrupted=show(f"spot: {status['Code']}: {status.get('Message', '')}"))


def _instance(entry: Mapping[str, Any]) -> Instance:
    tags, state = _tags(entry), _STATES.get(entry["State"]["Name"], InstanceState.UNKNOWN)
    launched: datetime = entry["LaunchTime"]
    return Instance(
        id=InstanceId(entry["InstanceId"]),
        node=NodeName(tags.get(NODE, "")),
        state=state,
        token=tags.get(TOKEN, ""),
        launched=launched.timestamp(),
        address=entry.get("PrivateIpAddress", ""),
        type=entry.get("InstanceType", ""),
        interrupted=_why_gone(entry) if state.is_dead else "",
    )


def _why_gone(entry: Mapping[str, Any]) -> str:
    """Return EC2's reason for the end of an instance; empty if the end was requested."""
    reason = entry.get("StateReason", {})
    code = reason.get("Code", "")
    return "" if code in _REQUESTED_ENDS else show(f"{code}: {reason.get('Message', '')}")


def _tags(entry: Mapping[str, Any]) -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in entry.get("Tags", ())}


def _all_refused(met: list[tuple[Offer, Ec2Refusal]]) -> Ec2Refusal:
    """Return one refusal for all offers, of the kind that is most likely to pass."""
    kind = min((refused.kind for _, refused in met), key=_NEXT_OFFER.index)
    text = "; ".join(f"{offer}: {refused}" for offer, refused in met)
    return Ec2Refusal(kind, met[0][1].code, show(text), is_undone=True)

"""What is asked of RunInstances for a slot: pure, so that every word of it can be tested without EC2."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steward.model.instance import Slot
from steward.model.settings.clouds import Ec2Provider as Ec2Settings
from steward.model.settings.clouds import Market

CLUSTER = "steward:cluster"
GROUP = "steward:group"
NODE = "steward:node"
TOKEN = "steward:token"
REBOOT = "steward:reboot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to get the instance. Empty words leave the choice to the launch template, or to EC2."""

    type: str
    subnet: str

    def __str__(self) -> str:
        return " in ".join(word for word in (self.type or "the template's type", self.subnet) if word)


def offers(settings: Ec2Settings, slot: Slot) -> Iterator[Offer]:
    """Every acceptable type in every subnet, the preferred type first."""
    for each in slot.types or settings.types or ("",):
        for subnet in settings.subnets or ("",):
            yield Offer(type=each.removeprefix("ml."), subnet=subnet)


def request(settings: Ec2Settings, slot: Slot, token: str, offer: Offer) -> Mapping[str, Any]:
    """The arguments of RunInstances. EC2 refuses a client token with other words than it came with before: the words
    are part of it, and whoever launches looks for the token's tag first."""
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
    return said | {"ClientToken": hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()}


def user_data(settings: Ec2Settings, slot: Slot) -> str:
    """The site's text with our words in it; every other brace stays as it is."""
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

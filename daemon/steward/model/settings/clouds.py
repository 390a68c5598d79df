"""Providers of sites whose machines come and go: the site's own commands, Slurm's power states, Amazon EC2."""

from enum import Enum

from pydantic import Field

from steward.model.section import Section
from steward.model.setting_types import Program, Words


class CommandProviderSettings(Section):
    """Machines made by the site's own programs: JSON in and out (docs/providers.md). `list` is authoritative."""

    launch: Program = Field(description="argv that makes a machine for a slot and token.")
    terminate: Program = Field(description="argv that ends a machine.")
    list: Program = Field(description="argv that prints every machine of this cluster.")
    reboot: Program | None = Field(default=None, description="argv that reboots a machine; none: replace it.")
    timeout_s: float = Field(default=120.0, ge=1, le=3600, description="Time limit of all but `list`, which has 30 s.")


class PowerProviderSettings(Section):
    """Nodes that the site's ResumeProgram and SuspendProgram create and remove, through Slurm's power states."""

    settle_s: float = Field(
        default=60.0,
        ge=1,
        le=3600,
        description="A node told to power up that is still down after this did not start.",
    )
    order_s: float = Field(
        default=15.0,
        ge=1,
        le=600,
        description="Time for Slurm to act on a power order: more than its power_save_interval.",
    )


class Market(Enum):
    """The purchase option of EC2 instances."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Ec2ProviderSettings(Section):
    """Amazon EC2 instances, made with RunInstances from a launch template or from the keys here."""

    region: str = Field(min_length=1, max_length=40, description="AWS region, such as `us-east-1`.")
    cluster: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$",
        examples=["cluster-1"],
        description="Value of the tag `steward:cluster`; other instances are never touched.",
    )
    launch_template: str = Field(
        default="",
        pattern=r"^(?:|[a-zA-Z0-9().\-/_]{3,128})$",
        examples=["lt-0abcd1234ef567890"],
        description="Id or name of a launch template; empty: set `image` and `types`.",
    )
    template_version: str = Field(
        default="$Default",
        pattern=r"^(?:\$Default|\$Latest|[0-9]+)$",
        examples=["$Latest"],
        description="Version of the launch template.",
    )
    image: str = Field(
        default="",
        pattern=r"^(?:|ami-[0-9a-f]{8,17})$",
        examples=["ami-0abcd1234ef567890"],
        description="AMI of slots that name none; empty: the template's.",
    )
    types: Words = Field(
        default=(), description="Instance types of slots that name none, the preferred first; empty: the template's."
    )
    subnets: Words = Field(
        default=(),
        description="Subnets, tried in order; empty: the template's or default.",
    )
    security_groups: Words = Field(default=(), description="Ids of security groups; empty: the template's or default.")
    key_name: str = Field(default="", max_length=255, description="EC2 key pair; empty: the template's.")
    instance_profile: str = Field(
        default="", max_length=256, description="Name or ARN of an instance profile; empty: the template's."
    )
    market: Market = Field(default=Market.ON_DEMAND, description="How instances are bought.")
    tags: dict[str, str] = Field(default={}, description="Further tags (`steward:*` are Steward's).")
    user_data: str = Field(
        default="",
        max_length=16000,
        description="User data; `{node}`, `{group}`, `{role}`, `{features}`, `{head}` and "
        "`{cluster}` are filled in; empty: the template's.",
    )
    head: str = Field(default="", max_length=255, description="Value of `{head}`: `head.listen` as nodes see it.")
    endpoint: str = Field(default="", max_length=255, description="URL of another EC2 API; empty: the region's own.")
    timeout_s: float = Field(default=20.0, ge=1, le=120, description="Time limit of one request.")

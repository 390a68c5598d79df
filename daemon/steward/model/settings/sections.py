"""The tables `[head]` and `[api]`."""

from pathlib import Path

from pydantic import Field, SecretStr

from steward.model.section import Section
from steward.model.setting_types import AddressRule, FullPath, HostPort, Words


class HeadSettings(Section):
    """The daemon `stewardd` on the controller."""

    listen: HostPort = Field(default="[::]:6861", description="Address for agents; `[::]`: all, of IPv4 and IPv6.")
    http: HostPort = Field(
        default="127.0.0.1:6860", description="HTTP API; beyond loopback it needs `api.tls_certificate`."
    )
    page_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s<>\"]{1,200})?$",
        examples=["https://steward.example.org"],
        description="URL of the status page for people, in requests for approval.",
    )
    users_http: HostPort | None = Field(
        default=None,
        description="Address for users on login hosts, such as `[::]:6862`; none: not served.",
    )
    state_dir: FullPath = Field(default=Path("/var/lib/steward"), description="Folder of the store, `steward.db`.")
    database: SecretStr | None = Field(
        default=None,
        min_length=8,
        description="SQLAlchemy URL of a shared database, for two heads; never shown.",
    )
    ledger_days: float = Field(
        default=400.0,
        ge=1,
        le=3660,
        description="How long jobs and repairs are kept for `steward report`.",
    )
    sweep_s: float = Field(
        default=5.0,
        ge=0.1,
        le=300,
        description="Longest time between two cycles; all records are read as often, unless that is dear.",
    )
    heartbeat_s: float = Field(
        default=0.5,
        ge=0.2,
        le=60,
        description="Time between an agent's heartbeats; or one second for each 250 nodes, if that is longer.",
    )
    agent_addresses: AddressRule = Field(
        default=AddressRule.AUTO,
        description="Refuse agents with another node's address (`auto`), or with an "
        "address unknown for their node (`strict`; not with NAT).",
    )


class ApiSettings(Section):
    """The permissions over HTTP (root and SlurmUser have all), and the endpoint for AWS clients."""

    host_names: Words = Field(
        default=(),
        description="Further host names by which clients may address the head.",
    )
    admins: Words = Field(default=(), description="Further login names with an admin's rights.")
    keys_file: FullPath | None = Field(
        default=None,
        description="TOML file with access keys of AWS clients, SlurmUser's, mode 0600; none: MUNGE only.",
    )
    region: str = Field(
        default="steward-1",
        pattern=r"^[a-z][a-z0-9-]{8,15}$",
        examples=["us-east-1"],
        description="AWS region of clients and ARNs: 9 to 16 of a-z, 0-9 and `-`.",
    )
    account: str = Field(
        default="000000000000",
        pattern=r"^[0-9]{12}$",
        examples=["000000000000"],
        description="AWS account in ARNs: 12 digits.",
    )
    reads_per_s: float = Field(
        default=20.0,
        gt=0,
        le=10000,
        description="Describe and List calls of one caller per second; twice as many at once.",
    )
    writes_per_s: float = Field(default=5.0, gt=0, le=10000, description="The same for all other calls.")
    tls_certificate: FullPath | None = Field(
        default=None, description="PEM certificate chain of `head.http`; none: plain HTTP."
    )
    tls_key: FullPath | None = Field(default=None, description="PEM file with the certificate's key.")
    tls_ca: FullPath | None = Field(
        default=None,
        description="PEM file of the authority that `steward` trusts; none: the system's.",
    )
    allow_plain_http: bool = Field(default=False, description="Serve beyond loopback without TLS.")

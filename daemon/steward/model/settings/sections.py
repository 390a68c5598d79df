"""The daemons' own tables: cluster, head, api, agent."""

from pathlib import Path

from pydantic import Field, SecretStr

from steward.model.mend import RESTARTABLE
from steward.model.setting_types import AddressRule, FullPath, HostPort, Section, Words


class ClusterSettings(Section):
    """The Slurm cluster that Steward looks after."""

    name: str = Field(default="", max_length=63, description="Name shown to people; empty: ClusterName of slurm.conf.")
    slurm_conf: FullPath = Field(
        default=Path("/etc/slurm/slurm.conf"),
        description="Slurm's configuration; `SLURM_CONF` in the environment replaces the default.",
    )
    slurm_user: str = Field(
        default="slurm", min_length=1, description="Login name of SlurmUser; stewardd runs as this user."
    )
    munge_socket: FullPath | None = Field(
        default=None, description="munged's socket; none: the munge library's own default."
    )
    command_timeout_s: float = Field(
        default=10.0,
        ge=1,
        le=18,
        description="Time limit of one Slurm command; an action takes up to three, within the watchdog's 60 s.",
    )


class HeadSettings(Section):
    """The daemon `stewardd` on the controller."""

    listen: HostPort = Field(default="0.0.0.0:6861", description="Address for agents.")
    http: HostPort = Field(
        default="127.0.0.1:6860", description="The HTTP API; beyond loopback it needs `api.tls_certificate`."
    )
    page_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s<>\"]{1,200})?$",
        description="URL under which people open the status page (`https://steward.example.org`); requests for "
        "approval link to it.",
    )
    users_http: HostPort | None = Field(
        default=None,
        description="Address for login hosts (`0.0.0.0:6862`; none: not served): `steward explain JOB`, `jobs` "
        "and `report`, for users whom MUNGE identifies. With TLS where `api.tls_certificate` is set.",
    )
    state_dir: FullPath = Field(default=Path("/var/lib/steward"), description="Folder of the store, `steward.db`.")
    database: SecretStr | None = Field(
        default=None,
        min_length=8,
        description="SQLAlchemy URL of a shared database instead of the file (two head nodes); never shown.",
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
        description="Longest time between two cycles of the head. Where it is cheap, all of Slurm's nodes and "
        "jobs are read as often.",
    )
    busy_sweep_s: float = Field(
        default=1.0,
        ge=0.1,
        le=300,
        description="The same while a case is open, a job is being resumed or a failed job waits for a decision.",
    )
    longest_sweep_s: float = Field(
        default=60.0,
        ge=1,
        le=600,
        description="All of Slurm's nodes and jobs are read at least this often. In between, a large site is read as "
        "often as 1 % of the time allows (10 % while busy); what is to be acted on is always read before.",
    )
    heartbeat_s: float = Field(
        default=0.5,
        ge=0.2,
        le=60,
        description="Shortest time between an agent's heartbeats; grows by one second per 250 nodes.",
    )
    agent_addresses: AddressRule = Field(
        default=AddressRule.AUTO,
        description="`auto`: an agent that speaks from another node's address is refused. `strict`: so is one from an "
        "address that neither Slurm nor the provider knows for its node (not where agents come through a second "
        "network or NAT). `off`: addresses are not compared.",
    )


class ApiSettings(Section):
    """The permissions over HTTP (root and SlurmUser have all), and the endpoint for AWS clients."""

    host_names: Words = Field(
        default=(),
        description="Further host names by which clients may address the head. Always accepted: addresses, "
        "`localhost`, the machine's name, the hosts of `head.http` and `agent.head`.",
    )
    admins: Words = Field(default=(), description="Further login names that may pause, resume actions and the like.")
    keys_file: FullPath | None = Field(
        default=None,
        description="TOML file with the access keys of AWS clients, owned by SlurmUser, mode 0600; none: MUNGE only.",
    )
    region: str = Field(
        default="steward-1",
        pattern=r"^[a-z][a-z0-9-]{8,15}$",
        description="AWS region that clients name and ARNs carry: 9 to 16 of a-z, 0-9 and `-`.",
    )
    account: str = Field(
        default="000000000000", pattern=r"^[0-9]{12}$", description="AWS account that ARNs carry: 12 digits."
    )
    clock_skew_s: float = Field(
        default=300.0,
        ge=1,
        le=900,
        description="A signed request may be this much older or newer than the head's time.",
    )
    reads_per_s: float = Field(
        default=20.0, gt=0, le=10000, description="Describe and List calls of one caller per second ..."
    )
    read_burst_count: int = Field(default=40, ge=1, le=10000, description="... after this many at once.")
    writes_per_s: float = Field(default=5.0, gt=0, le=10000, description="All other calls of one caller per second ...")
    write_burst_count: int = Field(default=10, ge=1, le=10000, description="... after this many at once.")
    max_body_kib: int = Field(default=1024, ge=16, le=16384, description="Longest request of an AWS client, in KiB.")
    tls_certificate: FullPath | None = Field(
        default=None, description="PEM file with the certificate chain of `head.http`; none: plain HTTP."
    )
    tls_key: FullPath | None = Field(default=None, description="PEM file with its private key.")
    tls_ca: FullPath | None = Field(
        default=None,
        description="PEM file of the authority that signed that certificate, for `steward`; none: the system's "
        "authorities.",
    )
    allow_plain_http: bool = Field(
        default=False, description="Serve other machines (`head.http` beyond loopback) without TLS."
    )


class AgentSettings(Section):
    """The daemon `steward-agent` on every node. `%n` in a path here is replaced by the node's name."""

    head: HostPort = Field(
        default="localhost:6861", description="Address of stewardd (`head.listen` as seen from a node)."
    )
    node_name: str = Field(
        default="",
        max_length=253,
        description="Slurm's name of this node; empty: by NodeHostname in slurm.conf, else `hostname -s`.",
    )
    socket: FullPath = Field(default=Path("/run/steward/agent.sock"), description="Socket for the shim.")
    state_dir: FullPath = Field(
        default=Path("/run/steward"), description="Folder of the agent's state until the next boot."
    )
    instance_id_file: FullPath | None = Field(
        default=None,
        description="File with the machine's instance id; none: the cloud's or firmware's id, or machine-id.",
    )
    boot_id_file: FullPath = Field(
        default=Path("/proc/sys/kernel/random/boot_id"), description="File with the id of this boot."
    )
    site_checks_dir: FullPath = Field(
        default=Path("/etc/steward/checks.d"), description="Executables that are the site's own checks."
    )
    kernel_log: FullPath = Field(
        default=Path("/dev/kmsg"), description="Kernel log to follow: /dev/kmsg or a plain file."
    )
    proc_dir: FullPath = Field(default=Path("/proc"), description="Where checks find the files of /proc.")
    sys_dir: FullPath = Field(default=Path("/sys"), description="Where checks find the files of /sys.")
    board_serial_file: FullPath = Field(
        default=Path("/sys/class/dmi/id/board_serial"),
        description="File with the serial number of the node's board; repairs are counted by it, also after a "
        "replacement.",
    )
    job_dir: FullPath = Field(
        default=Path("/run/steward/jobs"),
        description="Each job with `--auto-resume` that runs here has a folder of its user's in it, where its "
        "tasks report progress. Jobs must see it under this name (containers: mount it).",
    )
    setup_dir: FullPath = Field(
        default=Path("/var/lib/steward-agent"),
        description="Lifecycle scripts are fetched to this folder and run there; its file system must not be "
        "mounted noexec.",
    )
    setup_log: FullPath = Field(
        default=Path("/var/log/provision/provisioning.log"), description="Full output of lifecycle scripts."
    )
    restart_units: Words = Field(
        default=RESTARTABLE,
        description="systemd services that the agent may restart when a check asks for it; it never restarts others.",
    )
    config_dir: FullPath = Field(
        default=Path("/opt/ml/config"),
        description="Where resource_config.json and provisioning_parameters.json are written for lifecycle scripts.",
    )
    check_interval_s: float = Field(default=15.0, ge=0.2, le=3600, description="Time between two runs of each check.")
    hold_head_absent_s: float = Field(
        default=70.0,
        ge=0,
        le=3600,
        description="A failed job is held this long while the head is away; keep it below the shim's `hold=` (80).",
    )

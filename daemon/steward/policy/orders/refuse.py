"""Checks and refusals that several orders share: names, limits, roles, partitions, machine types."""

from collections import Counter
from collections.abc import Iterable, Sequence

from steward.model.capacity_policy import CapacityPolicy
from steward.model.group import Cluster, ClusterStatus, Group, GroupStatus, Role
from steward.model.order import GroupWish, Refusal, RefusalKind
from steward.model.partition import is_reserved
from steward.policy.orders.order_draft import OrderDraft, is_going

BUILT_IN = "ml."
"""Machine types of this family are known without a `[[machine_types]]` table."""


def invalid(text: str) -> Refusal:
    return Refusal(RefusalKind.VALIDATION, text)


def conflict(text: str) -> Refusal:
    return Refusal(RefusalKind.CONFLICT, text)


def limit(text: str) -> Refusal:
    return Refusal(RefusalKind.LIMIT, text)


def not_found(text: str) -> Refusal:
    return Refusal(RefusalKind.NOT_FOUND, text)


def check_repeated(names: Iterable[str], what: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise invalid(f"{what} names {', '.join(twice)} more than once.")


def check_not_busy(cluster: Cluster, doing: str) -> None:
    """Refuse a change while another one is under way; with continuous provisioning, updates may overlap."""
    if cluster.status in (ClusterStatus.IN_SERVICE, ClusterStatus.FAILED):
        return
    if cluster.continuous and cluster.status is ClusterStatus.UPDATING:
        return
    raise conflict(f"Cluster {cluster.name} is {cluster.status.value}: {doing} must wait until that is over.")


def check_open_for_nodes(group: Group, doing: str) -> None:
    """Refuse changes of single nodes in a group that has not reached its minimum."""
    if group.status in (GroupStatus.CREATING, GroupStatus.UPDATING, GroupStatus.DELETING, GroupStatus.SYSTEM_UPDATING):
        raise conflict(f"Instance group {group.name} is {group.status.value}: {doing} must wait until it is InService.")


def check_limits(groups: Sequence[Group], rules: CapacityPolicy) -> None:
    """Refuse too many groups, or too many instances in all groups together."""
    if len(groups) > rules.max_groups:
        raise limit(f"{len(groups)} instance groups; this head allows {rules.max_groups} (capacity.max_groups).")
    wanted = sum(group.goal.target for group in groups)
    if wanted > rules.max_instances:
        raise limit(f"{wanted} instances in all; this head allows {rules.max_instances} (capacity.max_instances).")


def check_roles(groups: Sequence[Group], cluster: str, *, has_slurm_config: bool) -> None:
    """Refuse two controller groups, one without exactly one instance, and none at all if there is SlurmConfig."""
    controllers = [group for group in groups if group.role is Role.CONTROLLER]
    if len(controllers) > 1:
        raise invalid(
            f"{len(controllers)} Controller Groups found: SlurmConfig for InstanceGroups may only have one "
            "Controller Group."
        )
    if has_slurm_config and not controllers:
        raise invalid(f"Cluster {cluster} has no InstanceGroup with Controller node type.")
    for group in controllers:
        if group.goal.target != 1:
            raise invalid(
                f"Instance group {group.name} is the controller: InstanceCount must be 1, not {group.goal.target} "
                "(it is the machine on which this head runs)."
            )


_CONTROLLER = "controller"


def check_classic(wishes: Sequence[GroupWish]) -> None:
    """Refuse HyperPod's classic form (no group has SlurmConfig) if one of the groups may not be a group of workers."""
    if has_slurm_config(wishes):
        return
    # the classic form names the controller's group only in the scripts' provisioning_parameters.json, which the head
    # does not read: it would launch that group as workers. Without scripts there is no such file: all groups are
    # workers, except one whose name says controller.
    if any(wish.lifecycle is not None and wish.lifecycle.has_scripts for wish in wishes):
        raise invalid(
            "No instance group has SlurmConfig, and the roles in provisioning_parameters.json are not read here: every "
            "group, the controller's too, would become workers. Give each group SlurmConfig with NodeType Controller, "
            "Login or Compute (and PartitionNames for Compute)."
        )
    if named := next((wish.name for wish in wishes if _CONTROLLER in wish.name.lower()), ""):
        raise invalid(
            f"No instance group has SlurmConfig: {named} would become workers. Give each group SlurmConfig with "
            "NodeType Controller, Login or Compute (and PartitionNames for Compute), or that group another name."
        )


def check_group(group: Group, draft: OrderDraft, *, continuous: bool, minimum: int | None) -> None:
    """Check a group by itself: its minimum, the source of its machines, their types, its partition. Raises Refusal."""
    if minimum is not None and not continuous:
        raise invalid(
            f"Instance group {group.name}: MinInstanceCount needs NodeProvisioningMode Continuous; leave one out or "
            "add the other."
        )
    if group.goal.minimum > group.goal.target:
        raise invalid(
            f"Instance group {group.name}: MinInstanceCount {group.goal.minimum} is above InstanceCount "
            f"{group.goal.target}."
        )
    _check_partition(group, draft)
    check_source(group, draft.rules)
    _check_types(group, draft.rules)


def check_source(group: Group, rules: CapacityPolicy) -> None:
    """Refuse a group without a provider, or larger than its pool."""
    if group.role is Role.CONTROLLER:
        return
    pool = rules.pools.get(group.name)
    if pool is None and not rules.has_provider:
        raise invalid(
            f"Instance group {group.name}: no provider is configured. Add a [[groups]] table of this name to "
            "steward.toml, or set capacity.provider."
        )
    if pool is not None and pool.nodes and group.goal.target > len(pool.nodes):
        raise limit(
            f"Instance group {group.name}: InstanceCount {group.goal.target}, but the [[groups]] table of this name "
            f"has {len(pool.nodes)} nodes."
        )


def _check_types(group: Group, rules: CapacityPolicy) -> None:
    """Refuse unknown machine types if the site declares its own; `ml.*` types are always known."""
    if not group.types:
        raise invalid(f"Instance group {group.name}: give InstanceType or InstanceRequirements.")
    unknown = [name for name in group.types if name not in rules.types and not name.startswith(BUILT_IN)]
    declared = sorted(name for name in rules.types if not name.startswith(BUILT_IN))
    if unknown and declared:
        raise invalid(
            f"Instance group {group.name}: unknown machine type {', '.join(unknown)}; known are ml.* and "
            f"{', '.join(declared)} ([[machine_types]])."
        )


def _check_partition(group: Group, draft: OrderDraft) -> None:
    if not group.partition:
        return
    if group.role is not Role.COMPUTE:
        raise invalid(f"Instance group {group.name}: Partitions can only be assigned to Compute node types.")
    rules = draft.rules
    is_written = rules.has_include and group.partition not in rules.owned_partitions
    for name in (group.partition, group.name) if is_written else ():
        if is_reserved(name):
            raise invalid(f"Instance group {group.name}: {name} is a word of Slurm's; take another name.")
    if not rules.has_include and group.partition not in {*rules.owned_partitions, *_partitions_of_slurm(draft)}:
        raise invalid(
            f"Instance group {group.name}: Slurm has no partition {group.partition}. Add it to slurm.conf, or set "
            "capacity.slurm_include so that Steward may write it."
        )


def _partitions_of_slurm(draft: OrderDraft) -> frozenset[str]:
    by_node = (node.partitions for node in draft.seen.nodes.values())
    return frozenset(draft.seen.partitions).union(*by_node)


def has_slurm_config(wishes: Iterable[GroupWish]) -> bool:
    return any(wish.role is not None for wish in wishes)


def group_of(draft: OrderDraft, name: str, cluster: Cluster) -> Group:
    """Return the group. Raises Refusal if it is unknown or being deleted."""
    group = draft.groups.get(name)
    if group is None:
        raise invalid(f"Cluster {cluster.name} has no instance group {name}.")
    if is_going(group):
        raise conflict(f"Instance group {name} is being deleted.")
    return group

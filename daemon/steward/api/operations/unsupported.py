"""Members of the model that promise something Steward does not do: refused, so that nobody relies on them."""

from steward.api.json11.errors import invalid
from steward.api.operations.sight import Members

_CLUSTER = {
    "RestrictedInstanceGroups": "there are no restricted groups",
    "RestrictedInstanceGroupsConfig": "there are no restricted groups",
    "AutoScaling": "it is for EKS; groups are scaled with UpdateCluster",
    "TieredStorageConfig": "it is for EKS",
}
_GROUP = {
    "AutoPatchConfig": "use UpdateClusterSoftware",
    "KubernetesConfig": "it is for EKS",
    "ScheduledUpdateConfig": "call UpdateClusterSoftware when it is time",
    "TrainingPlanArn": "capacity is the provider's",
}
_SPOT = "spot instances are chosen in the provider's settings"
_ACCOUNTING = "accounting is set up in slurm.conf and slurmdbd.conf"
_STRATEGY = "with NodeProvisioningMode Continuous, Steward only adds to its own include file"


def check_cluster(members: Members, *, continuous: bool) -> None:
    """Raises ApiError for a member of CreateCluster or UpdateCluster, or of its groups, that is not supported."""
    _refuse(members, _CLUSTER, "")
    _check_orchestrator(members.get("Orchestrator"), continuous=continuous)
    for number, group in enumerate(members.get("InstanceGroups", ()), 1):
        place = f"InstanceGroups.{number}.member."
        _refuse(group, _GROUP, place)
        if "Spot" in group.get("CapacityRequirements", {}):
            raise _unsupported(f"{place}CapacityRequirements.Spot", _SPOT)


def _refuse(members: Members, refused: dict[str, str], place: str) -> None:
    for name, why in refused.items():
        if name in members:
            raise _unsupported(place + name, why)


def _check_orchestrator(orchestrator: Members | None, *, continuous: bool) -> None:
    """Absent means Slurm: there is nothing else here."""
    if orchestrator is None:
        return
    if "Eks" in orchestrator:
        raise _unsupported("Orchestrator.Eks", "this is a Slurm cluster")
    if "Slurm" not in orchestrator:
        raise invalid("Orchestrator: give Slurm, or leave it out.")
    slurm = orchestrator["Slurm"]
    if "AccountingDatabase" in slurm:
        raise _unsupported("Orchestrator.Slurm.AccountingDatabase", _ACCOUNTING)
    if "SlurmConfigStrategy" in slurm and continuous:
        raise _unsupported("Orchestrator.Slurm.SlurmConfigStrategy", _STRATEGY)


def _unsupported(member: str, why: str) -> Exception:
    return invalid(f"{member} is not supported here: {why}.")

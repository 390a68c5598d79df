"""What Slurm's refusals mean. Every text of scontrol that Steward understands is in this one table."""

import re

from steward.adapters.process import Failed
from steward.ports import Permanent, PortError, Retryable, Stale

# Texts of 22.05.8, 24.11.5 and 26.05.5 (slurm_errno's table); the first that matches counts.
_TABLE: tuple[tuple[str, type[PortError]], ...] = (
    (r"Invalid job id specified", Stale),
    (r"Job is pending execution", Stale),
    (r"Job is no longer pending execution", Stale),
    (r"Job/step already completing or completed", Stale),
    (r"Job has already finished", Stale),
    (r"Invalid node state (specified|transition)", Stale),
    (r"Invalid node name", Stale),
    (r"Invalid partition name specified", Stale),
    (r"Requested reservation is invalid|Requested reservation not found", Stale),
    (r"Duplicate reservation name", Stale),
    (r"Requested reservation is in use|Partition is in use", Retryable),
    (r"Requested nodes are busy", Retryable),
    (r"Job update not available right now", Retryable),
    (r"Transport endpoint is not connected|Socket timed out|Connection (refused|reset|timed out)", Retryable),
    (r"Unable to contact slurm controller", Retryable),
    (r"Slurm backup controller in standby|in standby mode", Retryable),
    (r"Resource temporarily unavailable|Temporarily unable", Retryable),
    (r"Zero Bytes were transmitted", Retryable),
    (r"MUNGE|[Aa]uthentication|credential", Retryable),
    # sacctmgr's
    (r"Job\(s\) active, cancel job|have these as their Default QOS|You gave a bad qos", Stale),
    (r"no TRES known by type|Unknown (option|condition)|Invalid (qos|value)|You must be a (super|coord)", Permanent),
    (r"Requested operation is presently disabled", Permanent),
    (r"Access/permission denied|Invalid user id", Permanent),
    (r"You must specify a reason|Invalid input|Invalid job array specification", Permanent),
    (r"serializer|unrecognized option", Permanent),  # a Slurm that was built without JSON
    (r"fatal: Could not establish a configuration source|Unable to process configuration", Permanent),
)
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in _TABLE)


def refusal(failed: Failed) -> PortError:
    """The failed command as the kind of error that it means; Retryable when it says nothing that we know."""
    if failed.completed is None:
        return failed
    text = f"{failed.completed.error_text}\n{failed.completed.text}"
    kind = next((kind for pattern, kind in _COMPILED if pattern.search(text)), Retryable)
    return failed if kind is Retryable else kind(str(failed))

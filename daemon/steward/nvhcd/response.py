"""What ft_launcher is told for what the agent knows."""

import json

from steward.adapters.wire.nvhcd_messages import HealthCheckResponse
from steward.adapters.wire.verdict_line import Bad, Fine, Unknown, Verdict


def response_to(verdict: Verdict) -> HealthCheckResponse:
    """Unhealthy only for what takes a node out of service. The client parses `output`: without a
    `fail_count` in it NVRx 0.6 takes the node for unhealthy, 0.7 for healthy."""
    match verdict:
        case Bad(severity=severity, check=check, text=text) if severity.takes_out:
            said = {"fail_count": 1, "failed_checks": [check], "severity": severity.value, "text": text}
            return HealthCheckResponse(success=False, exit_code=1, output=json.dumps(said))
        case Bad(severity=severity, check=check, text=text):
            return _healthy(f"{severity.value}: {check}: {text}")
        case Fine():
            return _healthy("fine")
        case Unknown(why=why):
            return _healthy(f"unknown: {why}")


def _healthy(text: str) -> HealthCheckResponse:
    output = json.dumps({"fail_count": 0, "failed_checks": [], "text": text})
    return HealthCheckResponse(success=True, exit_code=0, output=output)

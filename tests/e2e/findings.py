"""What agents tell, as the head shows it."""

from typing import Any

from tests.e2e.story import Story

Finding = dict[str, Any]


def bad(story: Story, node: str) -> dict[str, Finding]:
    """Check -> its finding, of those that are bad on the node; none while nobody speaks for it. Without shared file
    systems: nodes of one machine also see the hung mount that another cluster's story makes meanwhile."""
    told = _agent(story, node).get("bad", ())
    return {finding["check"]: finding for finding in told if finding["check"] != "fs.shared"}


def telling(story: Story, check: str) -> dict[str, Finding]:
    """Node -> what it tells of the check, where that is bad."""
    agents = {each["name"]: each["agent"] for each in story.get("/v1/nodes") if each["agent"]}
    return {name: one for name, agent in agents.items() for one in agent["bad"] if one["check"] == check}


def checks_of(story: Story, node: str) -> dict[str, Finding]:
    """Check -> what the node says of it now, good or bad."""
    return {each["id"]: each for each in story.get(f"/v1/checks?node={node}")}


def why_unknown(story: Story, node: str, check: str) -> str:
    """Why the check cannot tell on the node; empty when it can."""
    one = checks_of(story, node).get(check, {"outcome": None})
    return str(one["text"]) if one["outcome"] == "unknown" else ""


def instance(story: Story, node: str) -> str:
    """Of the agent that speaks for the node now: also while other machines boot."""
    return str(_agent(story, node).get("instance"))


def _agent(story: Story, node: str) -> dict[str, Any]:
    return next(each["agent"] for each in story.get("/v1/nodes") if each["name"] == node) or {}

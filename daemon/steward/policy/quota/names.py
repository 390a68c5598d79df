"""How a team's two QOS are called in Slurm. Only what is called so is ours."""

PREFIX = "stw-"


def guaranteed_qos(team: str) -> str:
    return f"{PREFIX}{team}-g"


def borrowed_qos(team: str) -> str:
    return f"{PREFIX}{team}-b"


def team_of_qos(qos: str) -> str:
    """Empty for one that is not ours."""
    return qos.removeprefix(PREFIX)[:-2] if qos.startswith(PREFIX) and qos.endswith(("-g", "-b")) else ""

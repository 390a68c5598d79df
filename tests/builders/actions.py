"""Every class of action."""

from steward.model import action, agent_action
from steward.model.agent_action import Action, AgentAction, AgentsAction

KINDS: list[type[Action]] = [
    each
    for each in (vars(action) | vars(agent_action)).values()
    if isinstance(each, type) and issubclass(each, Action) and each not in (Action, AgentAction, AgentsAction)
]

"""Every class of action."""

from steward.model import action
from steward.model.action import Action, AgentAction, AgentsAction

KINDS: list[type[Action]] = [
    each
    for each in vars(action).values()
    if isinstance(each, type) and issubclass(each, Action) and each not in (Action, AgentAction, AgentsAction)
]

"""Every class of action."""

from steward.model import action
from steward.model.action import Action

KINDS: list[type[Action]] = [
    each for each in vars(action).values() if isinstance(each, type) and issubclass(each, Action) and each is not Action
]

"""Nodes that Slurm itself, or a person, took out."""

from steward.model.node import Reason
from tests.builders.picture import Picture


def slurm_drains(picture: Picture, text: str, *given: str, user: str = "slurm") -> Picture:
    for name in given or ("n2",):
        reason = Reason(text=text, user=user, at=picture.now)
        picture = picture.node(name, flags=frozenset({"DRAIN"}), reason=reason)
    return picture

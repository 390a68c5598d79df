"""The site's own commands: save and restore a node, and list the alarms that fire. Implements SitePort."""

from collections.abc import Sequence

from steward.adapters.process import Completed, Failed, run, show
from steward.model.capacity_policy import CapacitySettings
from steward.model.ids import InstanceId, NodeName
from steward.ports import Permanent, Retryable

_OUTPUT_KEPT = 1 << 20
_ALARMS_TIMEOUT_S = 30.0


class SiteCommands:
    """SitePort by the site's commands."""

    def __init__(self, settings: CapacitySettings) -> None:
        self._settings = settings

    def back_up(self, node: NodeName, instance: InstanceId, *, restore: bool) -> None:
        """Save or restore a node, if the site has a command for it.

        Raises Permanent, with the command's last line, if it fails.
        """
        command, what = (self._settings.restore, "restore") if restore else (self._settings.backup, "backup")
        if not command:
            return
        argv = [word.replace("%n", node).replace("%i", instance) for word in command]
        try:
            done = run(argv, timeout_s=self._settings.backup_deadline_s, max_bytes=_OUTPUT_KEPT, check=False)
        except Failed as failed:
            raise Permanent(f"the {what} of {node} ({instance}) failed: {failed}") from failed
        if done.returncode != 0:
            said = _last_line(done)
            raise Permanent(f"the {what} of {node} ({instance}) failed: {argv[0]} rc={done.returncode}: {said}")

    def firing(self, alarms: Sequence[str]) -> tuple[str, ...]:
        """Return those of the alarms that fire; other names that the command prints are ignored."""
        if not self._settings.alarms or not alarms:
            return ()
        if wrong := next((name for name in alarms if name.startswith("-")), None):
            raise Retryable(f"the alarm '{show(wrong)}' cannot be asked about: its name looks like an option")
        argv = [*self._settings.alarms, *alarms]
        done = run(argv, timeout_s=_ALARMS_TIMEOUT_S, max_bytes=_OUTPUT_KEPT, check=False)
        if done.returncode != 0:
            raise Retryable(f"which alarms fire is not known: {argv[0]} rc={done.returncode}: {_last_line(done)}")
        printed = {line.strip() for line in done.text.splitlines()}
        return tuple(name for name in alarms if name in printed)


def _last_line(done: Completed) -> str:
    """Return the last line of a program's stderr, or else of its stdout."""
    lines = [line for text in (done.text, done.error_text) for line in text.splitlines() if line.strip()]
    return show(lines[-1]) if lines else "it said nothing"

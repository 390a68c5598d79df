"""The jobs of `steward quota doctor --try`, by sbatch, squeue, scancel and sacctmgr, as the calling user."""

import getpass

from steward.accounting_port import TrialJob
from steward.adapters.process import Failed, show
from steward.adapters.slurm.commands import SlurmCommands, nothing_changed
from steward.adapters.slurm.team_rules import ours, plain
from steward.model.ids import JobId, NodeName
from steward.ports import Retryable

_MAX_BYTES = 1 << 20
_MINUTES = 5
_SLEEP = "exec sleep 600"


class TrialSlurm:
    """TrialPort."""

    def __init__(self, *, conf: str = "", timeout_s: float = 10.0) -> None:
        self._commands = SlurmCommands(conf=conf, timeout_s=timeout_s, max_bytes=_MAX_BYTES)
        self._user = plain(getpass.getuser())

    def enter(self, account: str) -> None:
        self._edit("add", "user", f"name={self._user}", f"account={plain(account)}")

    def leave(self, account: str) -> None:
        self._edit("delete", "user", "where", f"name={self._user}", f"account={plain(account)}")

    def submit(self, account: str, qos: str, *, partition: str, node: NodeName, gres: str = "") -> JobId:
        words = [
            f"--partition={partition}",
            f"--account={plain(account)}",
            f"--qos={ours(qos)}",
            f"--nodelist={node}",
            "--exclusive",
            "--mem=0",
            "--nodes=1",
        ]
        words += [f"--gres={gres}"] if gres else []
        limits = [f"--time={_MINUTES}", "--requeue", "--job-name=steward-trial", "--output=/dev/null", "--chdir=/"]
        told = self._commands.run("sbatch", "--parsable", *words, *limits, "--wrap", _SLEEP).text.strip()
        number = told.partition(";")[0]
        if not number.isdigit():
            raise Retryable(f"sbatch did not print the number of its job: '{show(told[:100])}'")
        return JobId(int(number))

    def job(self, id: JobId) -> TrialJob | None:
        """Return the job by `squeue`; None if it is gone: then squeue calls its id invalid."""
        try:
            told = self._commands.run(
                "squeue", "--noheader", f"--jobs={id}", "--Format=State:|,RestartCnt:|,Reason:|"
            ).text
        except Failed as failed:
            done = failed.completed
            if done is not None and "Invalid job id" in done.text + done.error_text:
                return None
            raise
        fields = [field.strip() for field in told.strip().split("|")]
        if len(fields) < 3:
            return None
        return TrialJob(state=fields[0], restarts=int(fields[1] or 0), reason=fields[2])

    def end_all(self, account: str) -> int:
        told = self._commands.run("squeue", "--noheader", f"--account={plain(account)}", "--Format=JobID").text
        ids = [word for word in told.split() if word.isdigit()]
        if ids:
            self._commands.run("scancel", *ids)
        return len(ids)

    def _edit(self, *words: str) -> None:
        try:
            self._commands.run("sacctmgr", "--immediate", *words)
        except Failed as failed:
            if not nothing_changed(failed):
                raise

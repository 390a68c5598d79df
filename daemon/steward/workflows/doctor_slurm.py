"""Which of Slurm's settings matter to Steward, and what is wrong with those of this cluster."""

from collections.abc import Mapping

from steward.workflows.doctor import Line, bad, ok, warn

_TOPIC = "slurm.conf"
_MIN_JOB_AGE_S = 60


def judge_slurm(config: Mapping[str, str]) -> list[Line]:
    """`config` as `scontrol show config` prints it, values without their comments."""
    judges = (_return_to_service, _slurmd_timeout, _min_job_age, _requeue, _requeue_exit, _batch_requeue, _prolog)
    return [judge(config) for judge in judges]


def _return_to_service(config: Mapping[str, str]) -> Line:
    value = config.get("ReturnToService", "")
    if value == "2":
        return ok(_TOPIC, "ReturnToService=2: a new instance registers by itself")
    return warn(
        _TOPIC,
        f"ReturnToService={value or '?'}: a node that Slurm itself marked DOWN stays down after its repair",
        "set ReturnToService=2 (what Steward takes out is drained first and does not come back by itself)",
    )


def _slurmd_timeout(config: Mapping[str, str]) -> Line:
    seconds = _seconds(config.get("SlurmdTimeout", ""))
    if seconds == 0 or (seconds or 0) >= 60:
        return ok(_TOPIC, f"SlurmdTimeout={seconds} s: Steward finds a dead node before Slurm does")
    return warn(
        _TOPIC,
        f"SlurmdTimeout={config.get('SlurmdTimeout', '?')}: Slurm may take out nodes before Steward knows why",
        "set SlurmdTimeout=300 (Slurm's default) or more; Steward finds a dead node within seconds",
    )


def _min_job_age(config: Mapping[str, str]) -> Line:
    seconds = _seconds(config.get("MinJobAge", ""))
    if seconds == 0 or (seconds or 0) >= _MIN_JOB_AGE_S:
        return ok(_TOPIC, f"MinJobAge={seconds} s: ended jobs can still be looked at and requeued")
    return bad(
        _TOPIC,
        f"MinJobAge={config.get('MinJobAge', '?')}: Slurm forgets an ended job before Steward can requeue it",
        f"set MinJobAge={_MIN_JOB_AGE_S} or more (Slurm's default is 300)",
    )


def _requeue(config: Mapping[str, str]) -> Line:
    if config.get("JobRequeue", "1") == "1":
        return ok(_TOPIC, "JobRequeue=1: jobs may be requeued")
    return ok(_TOPIC, "JobRequeue=0: Steward switches requeue on for jobs with --auto-resume and without --no-requeue")


def _requeue_exit(config: Mapping[str, str]) -> Line:
    given = [f"{key}={config[key]}" for key in ("RequeueExit", "RequeueExitHold") if _is_set(config.get(key, ""))]
    if not given:
        return ok(_TOPIC, "RequeueExit is not set: only Steward requeues by exit status")
    return warn(
        _TOPIC,
        f"{', '.join(given)}: Slurm requeues jobs by their exit status, beside Steward and without its budget",
        "remove it, or keep it to exit codes that jobs with --auto-resume do not use",
    )


def _batch_requeue(config: Mapping[str, str]) -> Line:
    value = config.get("MaxBatchRequeue", "")
    if not value.isdigit() or int(value) >= 5:
        return ok(_TOPIC, f"MaxBatchRequeue={value or 'Slurm default'}: a job is not held after few requeues")
    return warn(
        _TOPIC,
        f"MaxBatchRequeue={value}: Slurm holds a job whose launch failed that often",
        "set it to 5 or more; Steward lifts a hold that Slurm set on a job with --auto-resume",
    )


def _prolog(config: Mapping[str, str]) -> Line:
    flags = config.get("PrologFlags", "")
    if "NoHold" in flags or not _is_set(flags):
        return ok(_TOPIC, f"PrologFlags={flags or '(null)'}")
    return ok(_TOPIC, f"PrologFlags={flags}: the prolog runs before a job starts; its time counts into every resume")


def _is_set(value: str) -> bool:
    return value not in ("", "(null)", "(none)", "N/A")


def _seconds(value: str) -> int | None:
    """`300 sec` as 300."""
    first = value.split()[0] if value.split() else ""
    return int(first) if first.isdigit() else None

"""Calls for training scripts inside a job: three lines, the standard library only, harmless everywhere.

    import steward_job as job                   # or, where the package is installed: from steward import job

    job.progress(step)                          # after each step
    job.checkpoint_saved("/ckpt/step-100", 100) # after each checkpoint
    job.latest_checkpoint("/ckpt")              # at the start: the newest complete checkpoint, or None

No call raises an exception into the training loop or waits. Outside Steward's jobs the calls do nothing, but for
`latest_checkpoint`, which works everywhere. docs/job.md explains each call, and how to do the same in other languages.
"""

from steward.job.checkpoints import latest_checkpoint
from steward.job.talk import ResumeInfo, allow_stacks, checkpoint_saved, progress, resume_info

__all__ = ["ResumeInfo", "allow_stacks", "checkpoint_saved", "latest_checkpoint", "progress", "resume_info"]

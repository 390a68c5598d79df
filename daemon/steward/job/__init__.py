"""For training scripts inside a job: three lines, the standard library only, harmless everywhere.

    from steward import job

    job.progress(step)                          # after each step: how far it is
    job.checkpoint_saved("/ckpt/step-100", 100) # after each checkpoint
    job.latest_checkpoint("/ckpt")              # at the start: the newest complete one, or None

Nothing here raises into the training loop or waits for anything; outside a job of Steward's all of it does nothing
(`latest_checkpoint` works everywhere). docs/job.md says what each call is good for, and how other languages do it.
"""

from steward.job.checkpoints import latest_checkpoint
from steward.job.talk import ResumeInfo, allow_stacks, checkpoint_saved, progress, resume_info

__all__ = ["ResumeInfo", "allow_stacks", "checkpoint_saved", "latest_checkpoint", "progress", "resume_info"]

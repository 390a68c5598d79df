"""The calls of `steward.job` under a unique name: `import steward_job as job`.

The folder of this file is on the PYTHONPATH of jobs with --auto-resume, so that nothing has to be installed for the
user's Python. Without Steward (in a container, say) or with an old Python the import raises ImportError.
"""

import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _load(name):  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("steward_job_" + name, os.path.join(_FOLDER, name + ".py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


try:
    _talk, _checkpoints = _load("talk"), _load("checkpoints")  # type: ignore[no-untyped-call]
except Exception as error:
    raise ImportError("steward_job needs Python 3.10 or newer: " + repr(error)) from error

ResumeInfo = _talk.ResumeInfo
allow_stacks = _talk.allow_stacks
checkpoint_saved = _talk.checkpoint_saved
progress = _talk.progress
resume_info = _talk.resume_info
latest_checkpoint = _checkpoints.latest_checkpoint
__all__ = ["ResumeInfo", "allow_stacks", "checkpoint_saved", "latest_checkpoint", "progress", "resume_info"]

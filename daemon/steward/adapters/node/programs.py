"""Programs that checks look with."""

import glob
import shutil
import time

from steward.adapters.process import Completed, Failed, run
from steward.model.probe import Raw, RunOnEach, RunProgram


def run_program(probe: RunProgram) -> Raw:
    """Never raises; as RunProgram promises."""
    if probe.may_be_absent and shutil.which(probe.argv[0]) is None:
        return Raw(output=f"{probe.argv[0]} is not installed")
    try:
        env = dict(probe.env)
        if probe.stamp_env:
            env[probe.stamp_env] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        done = run(probe.argv, timeout_s=probe.timeout_s, env=env, max_bytes=probe.max_bytes, check=False)
    except Failed as error:
        return Raw(error=str(error))
    return Raw(returncode=done.returncode, output=_output(done), truncated=done.truncated)


def run_on_each(probe: RunOnEach) -> Raw:
    """As RunOnEach promises. Its status says nothing: such programs have many for "works, but". Raises Failed."""
    if shutil.which(probe.argv[0]) is None:
        return Raw(output=f"{probe.argv[0]} is not installed")
    paths = sorted({path for pattern in probe.patterns for path in glob.glob(pattern)})[: probe.max_paths]
    outputs: dict[str, str | None] = {}
    for path in paths:
        argv = (*probe.argv, path)
        done = run(argv, timeout_s=probe.timeout_s, max_bytes=probe.max_bytes, check=False)
        outputs[path] = _output(done)
    return Raw(returncode=0, files=outputs)


def _output(done: Completed) -> str:
    return done.text if done.text.strip() else done.error_text

"""What to change in a script, by the name of the finding."""

from collections.abc import Mapping
from types import MappingProxyType

CHANGE: Mapping[str, str] = MappingProxyType(
    {
        "no_requeue": "Take this line out (the rehearsal went on without it).",
        "open_mode": "Add a line to the script: #SBATCH --open-mode=append",
        "no_save": "Let it save a checkpoint now and then. If it does: name the folder (--saves FOLDER), let it "
        "save more often, or give the rehearsal more time (--minutes).",
        "too_short": "Give it more steps, so that it runs for some minutes and saves more than twice.",
        "fails": "Mend this first; Steward does not start a job again that fails by itself.",
        "not_started": "Try again when the cluster is less busy, or give it more time (--minutes).",
        "not_yet": "Give the rehearsal more time (--minutes).",
        "hangs": "Look for what the run before has left: a lock or port that is taken, a file that it waits "
        "for, the address of a machine that is gone, ranks that load different checkpoints.",
        "broken_save": "Write the checkpoint under another name and rename it when it is whole: torch.save(state, "
        'path + ".tmp"); os.replace(path + ".tmp", path). Or load what '
        "steward_job.latest_checkpoint(FOLDER) returns: it leaves out what is not whole.",
        "port_taken": "Let the program choose a free port, or make one of the job's number: 20000 + SLURM_JOB_ID % "
        "20000.",
        "old_address": "Ask for the address at each start: scontrol show hostnames $SLURM_JOB_NODELIST | head -n1",
        "already_there": "Let it accept what an earlier run has made: mkdir -p, exist_ok=True.",
        "fails_again": "The first start did not meet this: look for what the run before has left, or what only a "
        "first start sets up.",
        "no_steps": "Print the step now and then (step 120 loss 0.5), or report it: steward_job.progress(step).",
        "from_start": "Let it look for its newest checkpoint when it starts, and load it: "
        "steward_job.latest_checkpoint(FOLDER). See that it looks in the folder that it saves to, and "
        "that this folder has the same name at each start (no date, no restart count).",
        "older_save": "Load the newest one, by number: sorted by name, step-100 comes before step-20. "
        "steward_job.latest_checkpoint(FOLDER) does it.",
        "skips": "Save the step that is done, and go on with the next one.",
        "loss_back": "Load the weights and the optimizer's state, too, on every rank, and after the model is on "
        "its device.",
        "rate_jumps": "Save and load the scheduler's state_dict.",
        "other_numbers": "If no sample is to be seen twice or left out: save the state of the sampler and of the "
        "random generators, or make the order a function of seed and step.",
        "saves_once": "See that a resumed run saves as the first one does, or give the rehearsal more time "
        "(--minutes).",
        "ignores_term": "That time is lost at each preemption and shutdown. Let it end at SIGTERM, and save before, "
        "if there is time.",
    }
)

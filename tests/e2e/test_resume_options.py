"""What a job says behind `--auto-resume=`: how often, until when it is no use, which codes are final; wrong words."""

import shlex

from tests.e2e.story import Story

AT_ONCE = "age=0,backoff=0"


def test_each_job_ends_for_the_reason_that_its_options_name(story: Story) -> None:
    """Four jobs that always fail, side by side; the last ends itself as scancel would."""
    saved = '{"step": 9, "checkpoint": "/none", "checkpoint_step": 7}'
    fails = story.script("fails.sh", f"echo run >>{story.dir}/fails\nexit 4\n")
    stuck = story.script(
        "stuck.sh", f"echo run >>{story.dir}/stuck\necho '{saved}' >$STEWARD_PROGRESS_FILE\nsleep 4\nexit 5\n"
    )
    final = story.script("final.sh", f"echo run >>{story.dir}/final\nexit 93\n")
    ends = story.script("ends.sh", f"trap 'kill 0' EXIT\necho run >>{story.dir}/ends\nsleep 30 &\nsleep 1\nexit 1\n")
    often = story.submit(fails, f"--auto-resume=any:2,{AT_ONCE}", "-N1")
    no_use = story.submit(stuck, f"--auto-resume=any:5,stalls=1,{AT_ONCE}", "-N1")
    never = story.submit(final, f"--auto-resume=any:5,{AT_ONCE}", "-N1")
    itself = story.submit(ends, "--auto-resume=1", "-N1")

    assert story.wait_end(itself).exit_code == "0:15"
    assert story.wait_end(never).exit_code == "93:0"
    assert story.wait_end(often, 60.0).exit_code == "4:0"
    assert story.wait_end(no_use, 90.0).exit_code == "5:0"

    assert [len(story.lines(name)) for name in ("final", "fails", "ends")] == [1, 3, 1]
    assert 2 <= len(story.lines("stuck")) <= 3
    rules = {job: story.get(f"/v1/jobs/{job}/history")[-1]["rule"] for job in (often, no_use, never, itself)}
    assert rules == {
        often: "resume.any_used",
        no_use: "resume.no_progress",
        never: "resume.final_code",
        itself: "resume.no_evidence",
    }
    for job, words in ((often, "without evidence"), (no_use, "no new checkpoint"), (never, "do not try again")):
        shown = story.bed.run(["scontrol", "-o", "show", "job", str(job)]).text
        comment = shown.partition("AdminComment=steward: ")[2].partition(" StdErr=")[0]
        assert (("stopped" in comment), (words in comment)) == (True, True), comment
        assert rules[job] in story.explain(str(job))


def test_what_cannot_work_is_refused_in_one_line_and_nothing_is_submitted(story: Story) -> None:
    """Slurm itself goes on without a plugin that says no once the options are read."""
    wrong = {
        "is not for a job array": ["sbatch", "--elastic=4", "--array=0-3", "--wrap=true"],
        "needs --auto-resume": ["sbatch", "--elastic=4", "--auto-resume=0", "--wrap=true"],
        "'yes' is not known": ["env", "STEWARD_AUTO_RESUME=yes", "sbatch", "--wrap=true"],
        "is for sbatch only": ["srun", "--elastic=4", "true"],
    }
    every = ["squeue", "--noheader", "--states=all", "--format=%A"]
    before = story.bed.run(every).text
    for why, argv in wrong.items():
        done = story.bed.run(argv, check=False)
        assert (done.returncode, why in done.error_text, len(done.error_text.splitlines())) == (255, True, 1), done
    assert story.bed.run(every).text == before


def test_a_steps_failure_is_the_scripts_to_handle_and_a_step_with_the_option_of_its_own_runs_again(
    story: Story,
) -> None:
    """In place it keeps what it wrote before, also with a pipe as input through which nothing came. `exit 143` is a
    code, and no cancellation; the error that the handled step prints does not stop the job's own resume."""
    place = story.dir
    task = "echo attempt $STEWARD_ATTEMPT; test $STEWARD_ATTEMPT = 2"
    argv = ["srun", "-n1", "-o", f"{place}/step.out", "--auto-resume=any:1,age=0", "sh", "-c", task]
    popen = f"import subprocess as s, sys; sys.exit(s.Popen({argv}, stdin=s.PIPE).wait())"
    script = story.script(
        "steps.sh",
        f"srun -n1 sh -c 'echo ImportError: x; echo try >>{place}/handled; exit 3' || echo handled >>{place}/handled\n"
        f'env -u SLURM_OPEN_MODE python3 -c "$PROGRAM"; echo rc $? >>{place}/handled\n'
        f"[ -e {place}/first ] || {{ cp {place}/step.out {place}/first; exit 143; }}\n",
    )
    program = f"PROGRAM={popen}"
    text = script.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\nexport {shlex.quote(program)}\n")
    script.write_text(text)
    job = story.submit(script, f"--auto-resume=any:2,{AT_ONCE}", "-N1")

    assert story.wait_end(job, 60.0).exit_code == "0:0"
    assert story.lines("handled") == ["try", "handled", "rc 0", "try", "handled", "rc 1"]
    assert story.lines("first") == ["attempt 1", "attempt 2"]
    rules = [one["rule"] for one in story.get(f"/v1/jobs/{job}/history")]
    assert rules[:2] == ["resume.retry", "resume.any"]

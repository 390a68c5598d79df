"""The shim in sbatch, salloc and slurmstepd: what it hands on, and that it never holds longer than it says."""

import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from bed import DEADLINE_S, FAKE_SLURM, ShimTest, await_condition

LIBRARY = Path(FAKE_SLURM).parent / "steward.so"


class Submission(ShimTest):
    """sbatch and salloc."""

    def submit(self, *argv: str, **env: str) -> str:
        """What sbatch hands on."""
        status, output, _ = self.run_slurm("sbatch", *argv, **{"SLURM_JOB_ID": "", **env})
        assert status == 0, output
        return output.strip()

    def test_the_mode_reaches_the_job_and_the_controllers_scripts(self) -> None:
        assert self.submit("--auto-resume=any:3") == "mode=any:3 control=any:3 inherited=-"

    def requeue_of(self, *argv: str, **env: str) -> str:
        """What becomes of `1` on the way, and of the option as Slurm hands it on."""
        told = self.submit("--auto-resume=1", *argv, **env)
        mode = told.splitlines()[-1].split()[0].removeprefix("mode=")
        assert told.endswith(f"mode={mode} control={mode} inherited=-"), told
        return mode.removeprefix("1").removeprefix(",")

    def test_who_says_no_requeue_himself_is_not_requeued(self) -> None:
        script = self.folder / "train.sh"
        script.write_text("#!/bin/bash\n#SBATCH -N2 --no-requeue  # --requeue\n\ntrue\n#SBATCH --requeue\n")
        plain = self.folder / "plain.sh"
        plain.write_text("#!/bin/bash\n# --no-requeue\necho\n#SBATCH --no-requeue\n")
        unsaid, no = "", "requeue=0"
        for argv, env, becomes in (
            (["--no-requeue"], {}, no),
            (["--requeue", "--no-req"], {}, no),
            ([str(script)], {}, no),
            ([], {"SBATCH_NO_REQUEUE": "1"}, no),
            (["--no-requeue", "--requeue", str(script)], {}, unsaid),
            (["--requeue=expedite"], {"SBATCH_NO_REQUEUE": "1"}, unsaid),
            ([str(plain), "--no-requeue"], {}, unsaid),
            (["--no-kill", str(self.folder / "none.sh")], {}, unsaid),
        ):
            with self.subTest(argv=argv, **env):
                assert self.requeue_of(*argv, **env) == becomes

    def test_the_option_itself_overrules_no_requeue(self) -> None:
        assert "mode=1,requeue=1 " in self.submit("--auto-resume=1,requeue=1", "--no-requeue")
        assert "mode=0 " in self.submit("--auto-resume=0", "--no-requeue")

    def test_a_bad_value_refuses_the_submission(self) -> None:
        for command in ("sbatch", "salloc", "srun"):
            status, output, _ = self.run_slurm(command, "--auto-resume=maybe")
            assert status != 0
            assert len(output.splitlines()) == 1, output

    def test_options_of_the_mode_travel_as_they_are(self) -> None:
        text = "any:3,max=10,codes=2:3,checkpoint=/scratch/" + "x" * 200
        assert self.submit(f"--auto-resume={text}") == f"mode={text} control={text} inherited=-"

    def test_a_bad_option_is_named_with_the_good_ones(self) -> None:
        for command in ("sbatch", "salloc", "srun"):
            status, output, _ = self.run_slurm(command, "--auto-resume=1,max=5,hangs=3")
            assert status != 0
            assert "'hangs=3' is not known" in output
            assert ",hang=0|1|SECONDS" in output

    def test_the_environment_opts_in_where_the_option_is_not_given(self) -> None:
        assert self.submit(STEWARD_AUTO_RESUME="any:2") == "mode=any:2 control=any:2 inherited=-"
        assert self.submit("--auto-resume=0", STEWARD_AUTO_RESUME="1") == "mode=0 control=0 inherited=-"

    def test_a_bad_word_in_the_environment_refuses_the_submission(self) -> None:
        status, output, _ = self.run_slurm("sbatch", SLURM_JOB_ID="", STEWARD_AUTO_RESUME="yes")
        assert status != 0
        assert "STEWARD_AUTO_RESUME in the environment: 'yes' is not known: use 0, 1" in output

    def test_who_asks_to_be_resumed_reads_the_sites_warning(self) -> None:
        handed_on = "mode=1 control=1 inherited=-"
        assert self.submit("--auto-resume=1") == handed_on, "no file, no line"
        file = self.folder / "warning"
        file.write_text("resuming is off on this cluster\nmore\n")
        for argv, env in ((["--auto-resume=1"], {}), ([], {"STEWARD_AUTO_RESUME": "1"})):
            told = self.submit(*argv, **env).splitlines()
            assert "steward: resuming is off on this cluster" in told[0], told
            assert told[1:] == [handed_on]
        assert self.submit("--auto-resume=0") == "mode=0 control=0 inherited=-"
        assert self.submit() == "mode=- control=- inherited=-"

    def test_a_warning_that_cannot_be_read_costs_a_submission_nothing(self) -> None:
        file = self.folder / "warning"
        for make in (file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero"), file.touch):
            with self.subTest():
                make()
                began = time.monotonic()
                assert self.submit("--auto-resume=1") == "mode=1 control=1 inherited=-"
                assert time.monotonic() - began < DEADLINE_S / 2
                file.rmdir() if file.is_dir() else file.unlink()

    def test_a_variable_of_an_outer_job_opts_nothing_in(self) -> None:
        assert self.submit(SLURM_JOB_ID="12", STEWARD_AUTO_RESUME="1") == "mode=- control=- inherited=-"

    def test_a_job_submitted_inside_an_opted_in_job_inherits_nothing(self) -> None:
        variable = "SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume"
        inside = self.submit(SLURM_JOB_ID="12", STEWARD_AUTO_RESUME="1", **{variable: "1"})
        assert inside == "mode=- control=- inherited=-"
        told = {"STEWARD_PROGRESS_FILE": "/run/x", "STEWARD_RESUME_COUNT": "2", "STEWARD_CULPRITS": "n3"}
        assert self.submit(SLURM_JOB_ID="12", **told) == inside
        assert self.submit(**{variable: "1"}).endswith("inherited=1"), "outside it is the user's own wish"


class Elastic(ShimTest):
    """sbatch --elastic=."""

    def submitted(self, *argv: str, **env: str) -> str:
        """What sbatch hands on."""
        status, output, _ = self.run_slurm("sbatch", *argv, **{"SLURM_JOB_ID": "", **env})
        assert status == 0, output
        return output.strip()

    def refused(self, command: str, *argv: str, **env: str) -> str:
        """The one line that says why."""
        status, output, _ = self.run_slurm(command, *argv, **{"SLURM_JOB_ID": "", **env})
        assert status != 0, output
        lines = [line for line in output.splitlines() if "steward: " in line]
        assert len(lines) == 1, output
        return lines[0]

    def test_it_is_handed_on_with_what_was_typed_and_implies_resuming(self) -> None:
        told = self.submitted(
            "--elastic=8:2,grace=30", "--job-name=a b%", "--nodes=2", "train.sh", "--lr", "1"
        ).splitlines()
        assert "STEWARD_ELASTIC=8:2,grace=30" in told
        assert "STEWARD_ELASTIC_ROLE=base" in told
        assert "STEWARD_ELASTIC_ARGS=--elastic=8:2,grace=30 --job-name=a%20b%25 --nodes=2" in told
        assert told[-1] == "mode=1 control=1 inherited=-"

    def test_the_mode_that_was_given_stays(self) -> None:
        assert "mode=any:3 control=any:3" in self.submitted("--elastic=8", "--auto-resume=any:3")

    def test_what_cannot_work_is_refused_with_the_reason(self) -> None:
        script = self.folder / "het.sh"
        script.write_text("#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\ntrue\n")
        for argv, why in (
            (["--elastic=8,speed=3"], "'speed=3' is not known: use MAX, MAX:STEP or A,B,C"),
            (["--elastic=8,grace=0"], "'grace=0' is out of range: use MAX"),
            (["--elastic=2,4,batch=7,uneven=0"], "does not share its batch out evenly"),
            (["--elastic=8,batch=7"], "fewer samples in a batch than nodes"),
            (["--elastic=4", "--nodes=5"], "does not let the job grow beyond its own nodes"),
            (["--elastic=2,4", "--nodes=3"], "less than the job's own nodes"),
            (["--elastic=4", "--array=1-3"], "is not for a job array"),
            (["--elastic=4", str(script)], "is not for a heterogeneous job"),
            (["--elastic=4", "--auto-resume=0"], "needs --auto-resume"),
        ):
            with self.subTest(argv=argv):
                assert why in self.refused("sbatch", *argv)
        assert "is not for a job array" in self.refused("sbatch", "--elastic=4", SBATCH_ARRAY_INX="1-3")
        assert "is for sbatch only" in self.refused("salloc", "--elastic=4")
        _, output, _ = self.run_slurm("srun", "--elastic=4", SLURM_JOB_ID="")
        assert "is for sbatch only" in output

    def test_a_switch_that_keeps_jobs_apart_is_warned_of(self) -> None:
        for switch in ("switch/hpe_slingshot", "switch/nvidia_imex"):
            with self.subTest(switch=switch):
                assert f"SwitchType={switch}" in self.submitted("--elastic=4", FAKE_SWITCH=switch)
        assert "SwitchType" not in self.submitted("--elastic=4", FAKE_SWITCH="switch/none")

    def test_a_job_submitted_inside_an_elastic_one_inherits_nothing(self) -> None:
        inside = {"STEWARD_ELASTIC": "8", "STEWARD_ELASTIC_ROLE": "replica", "STEWARD_ELASTIC_RUN": "12"}
        assert self.submitted(SLURM_JOB_ID="12", **inside) == "mode=- control=- inherited=-"
        option = {"SLURM_SPANK__SLURM_SPANK_OPTION_steward_elastic": "8"}
        assert self.submitted(SLURM_JOB_ID="12", **option) == "mode=- control=- inherited=-"

    def test_a_replica_keeps_its_run_and_is_not_resumed(self) -> None:
        given = {"STEWARD_ELASTIC_SUBMIT": "1", "STEWARD_ELASTIC_RUN": "12", "STEWARD_ELASTIC_TOKEN": "abc"}
        told = self.submitted("--elastic=8", "--auto-resume=1", **given).splitlines()
        assert {"STEWARD_ELASTIC_ROLE=replica", "STEWARD_ELASTIC_RUN=12", "STEWARD_ELASTIC_TOKEN=abc"} <= set(told)
        assert told[-1].startswith("mode=0 control=0")


class Start(ShimTest):
    """slurmstepd, when a step starts."""

    def told(self, *argv: str, **env: str) -> list[str]:
        """The lines an agent got about a step that ends well."""
        agent = self.agent("stop")
        status, output, _ = self.run_slurm("slurmstepd", *argv, **env)
        assert status == 0, output
        agent.close()
        return agent.lines

    def test_the_script_of_an_opted_in_job_is_told(self) -> None:
        opted = ["steward/1 opted job=12 uid=1000 mode=1 restart=0 batch=1"]
        assert self.told("batch", "0", FAKE_JOB_MODE="1") == opted

    def test_the_script_of_a_runs_base_tells_its_sizes(self) -> None:
        opted = ["steward/1 opted job=12 uid=1000 mode=1 restart=0 batch=1 elastic=8:2"]
        assert self.told("batch", "0", FAKE_JOB_MODE="1", FAKE_ELASTIC="8:2", FAKE_ROLE="base") == opted

    def test_the_sizes_survive_that_the_environment_is_cut_off(self) -> None:
        lost = {"FAKE_CONTROL_ELASTIC": "8:2", "FAKE_CONTROL_ROLE": "base"}
        assert self.told("batch", "0", FAKE_JOB_MODE="1", **lost)[0].endswith(" elastic=8:2")

    def test_a_replica_tells_no_sizes(self) -> None:
        assert "elastic" not in self.told("batch", "0", FAKE_JOB_MODE="0", FAKE_ELASTIC="8", FAKE_ROLE="replica")[0]

    def test_a_step_tells_no_sizes(self) -> None:
        assert "elastic" not in self.told("3", "0", FAKE_JOB_MODE="1", FAKE_ELASTIC="8", FAKE_ROLE="base")[0]

    def test_the_tasks_of_a_base_know_the_runs_name(self) -> None:
        _, output, _ = self.run_slurm("slurmstepd", "batch", "0", FAKE_JOB_MODE="1", FAKE_ELASTIC="8", FAKE_ROLE="base")
        assert "task STEWARD_ELASTIC_RUN=12" in output

    def test_a_requeued_script_tells_how_often(self) -> None:
        assert "restart=7 batch=1" in self.told("batch", "0", FAKE_JOB_MODE="1", FAKE_RESTARTS="7")[0]

    def test_a_step_with_the_option_is_told(self) -> None:
        opted = ["steward/1 opted job=12 uid=1000 mode=any:2 restart=0 batch=0 step=3"]
        assert self.told("3", "0", "--auto-resume=any:2") == opted

    def test_a_script_that_lost_its_environment_is_told_and_gets_it_back(self) -> None:
        self.agent("stop")
        _, output, _ = self.run_slurm("slurmstepd", "batch", "0", FAKE_CONTROL_MODE="1")
        assert "job mode=1" in output

    def test_a_step_that_opts_out_is_not_told(self) -> None:
        assert self.told("3", "0", "--auto-resume=0", FAKE_JOB_MODE="1") == []

    def test_a_job_without_the_option_is_not_told(self) -> None:
        assert self.told("batch", "256") == []

    def test_the_extern_step_is_not_told(self) -> None:
        assert self.told("extern", "0", FAKE_JOB_MODE="1") == []

    def test_an_agent_that_does_not_accept_delays_the_start_by_a_fifth_of_a_second_at_most(self) -> None:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as first:
            server.bind(self.socket)
            server.listen(0)
            first.connect(self.socket)
            status, _, seconds = self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="1")
        assert status == 0
        assert seconds < 0.8

    def test_an_agent_that_says_nothing_delays_the_start_by_a_third_of_a_second_at_most(self) -> None:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(self.socket)
            silent.listen(8)
            status, output, seconds = self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="1")
        assert status == 0
        assert "takes note of job 12" in output
        assert 0.3 <= seconds < 0.9

    def test_the_second_attempt_of_a_step_says_so(self) -> None:
        opted = ["steward/1 opted job=12 uid=1000 mode=1 restart=0 batch=0 step=3 attempt=2"]
        assert self.told("3", "0", FAKE_JOB_MODE="1", FAKE_ATTEMPT="2") == opted

    def test_a_script_that_was_opted_out_is_told_and_asks_for_nothing(self) -> None:
        agent = self.agent("stop")
        self.run_slurm("slurmstepd", "batch", "256", "--auto-resume=0")
        agent.close()
        assert agent.lines == ["steward/1 opted job=12 uid=1000 mode=0 restart=0 batch=1"]


class Environment(ShimTest):
    """What the agent's answer becomes."""

    FACTS = " resume_count=2 progress_file=/run/x/12/progress resume_reason=node%20n3%20failed path=/bin ld_preload=x"

    def env_of(self, step: str, **env: str) -> list[str]:
        """The variables that the shim has set, of the script's process or of all tasks."""
        self.agent("stop").facts = self.FACTS
        _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1", **env)
        return [line for line in output.splitlines() if line.startswith("task " if step == "batch" else "stepd ")]

    def test_scripts_and_tasks_get_what_is_known_and_nothing_else(self) -> None:
        for step, whose in (("batch", "task"), ("3", "stepd")):
            with self.subTest(step):
                self.socket = str(self.folder / step)
                assert sorted(self.env_of(step)) == [
                    f"{whose} STEWARD_AUTO_RESUME=1",
                    f"{whose} STEWARD_PROGRESS_FILE=/run/x/12/progress",
                    f"{whose} STEWARD_RESUME_COUNT=2",
                    f"{whose} STEWARD_RESUME_REASON=node n3 failed",
                ]

    def test_a_resumed_script_has_one_line_about_it_in_its_output_and_a_step_has_none(self) -> None:
        self.agent("stop").facts = " resumed=1%20of%205,%20after%20n2%20failed"
        for step, lines in (("batch", 1), ("3", 0)):
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1")
            assert output.count("steward: resumed, 1 of 5, after n2 failed\n") == lines, output

    def test_a_warning_of_the_agents_is_one_line_in_the_scripts_output(self) -> None:
        self.agent("stop").facts = " warning=resuming%20is%20off"
        for step, lines in (("batch", 1), ("3", 0)):
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1")
            assert output.count("steward: resuming is off\n") == lines, output

    def test_without_an_agent_only_the_mode_is_set(self) -> None:
        _, output, _ = self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="1")
        assert [line for line in output.splitlines() if line.startswith("stepd ")] == ["stepd STEWARD_AUTO_RESUME=1"]


class SiteDefault(ShimTest):
    """Batch jobs without the option, where the site has a list."""

    LIST = "partition=gpu account=llm mode=any:3\nnonsense\npartition=gpu mode=bogus\npartition=gpu mode=1,max=7\n"

    def script(self, **env: str) -> tuple[list[str], str]:
        """What the agent heard of a script that fails, and the log."""
        (self.folder / "defaults").write_text(self.LIST)
        agent = self.agent("stop")
        _, output, _ = self.run_slurm("slurmstepd", env.pop("step", "batch"), "256", **env)
        agent.close()
        return agent.lines, output

    def test_the_first_line_that_fits_counts(self) -> None:
        lines, output = self.script(FAKE_PARTITION="gpu", FAKE_ACCOUNT="llm")
        assert "mode=any:3" in lines[0]
        assert "task STEWARD_AUTO_RESUME=any:3" in output

    def test_a_script_opted_in_by_the_site_is_held(self) -> None:
        lines, _ = self.script(FAKE_PARTITION="gpu", FAKE_ACCOUNT="other", FAKE_RESTARTS="4")
        assert lines == [
            "steward/1 opted job=12 uid=1000 mode=1,max=7 restart=4 batch=1",
            "steward/1 ask kind=batch job=12 step=batch uid=1000 mode=1,max=7 attempt=1 restart=4 status=256",
        ]

    def test_a_job_for_which_no_line_is_stays_out(self) -> None:
        assert self.script(FAKE_PARTITION="cpu")[0] == []

    def test_the_users_word_stands_above_the_sites(self) -> None:
        lines, _ = self.script(FAKE_PARTITION="gpu", FAKE_JOB_MODE="0")
        assert lines == ["steward/1 opted job=12 uid=1000 mode=0 restart=0 batch=1"]

    def test_a_step_is_not_opted_in_by_the_site(self) -> None:
        assert self.script(FAKE_PARTITION="gpu", step="3")[0] == []


class Failures(ShimTest):
    """Tasks that ended badly, and where the script's output is."""

    def told(self, *argv: str, **env: str) -> list[str]:
        """What the agent heard beside `opted`."""
        agent = self.agent("stop")
        self.run_slurm("slurmstepd", *argv, **env)
        agent.close()
        return [line for line in agent.lines if not line.startswith("steward/1 opted")]

    def test_a_failed_task_of_an_opted_in_job_is_told(self) -> None:
        exits = ["steward/1 exit job=12 step=3 restart=0 task=0 status=9"]
        assert self.told("3", "9", FAKE_JOB_MODE="1") == exits

    def test_the_first_eight_of_a_step_are_told(self) -> None:
        tasks = [line.split("task=")[1] for line in self.told("3", "256", FAKE_JOB_MODE="1", FAKE_TASKS="20")]
        assert tasks == [f"{task} status=256" for task in range(8)]

    def test_a_task_that_ended_well_or_of_a_job_without_the_option_is_not(self) -> None:
        assert self.told("3", "0", FAKE_JOB_MODE="1") == []
        self.socket = str(self.folder / "second")
        assert self.told("3", "256") == []

    def test_the_file_that_a_script_writes_to_is_told(self) -> None:
        agent = self.agent("stop")
        out = self.folder / "a b%.out"
        out.write_text("of a run before\n")
        with out.open("a") as file:
            env = self.env(FAKE_JOB_MODE="1", FAKE_RESTARTS="2")
            subprocess.run(
                ["slurmstepd", "batch", "0"], executable=FAKE_SLURM, env=env, stdout=file, timeout=20, check=True
            )
        agent.close()
        where = str(self.folder / "a%20b%25.out")
        assert agent.lines[1:] == [f"steward/1 log job=12 restart=2 size=16 out={where}"]


class Hold(ShimTest):
    """slurmstepd, when the script has failed."""

    def hold(self, answers: str | None, status: str = "768") -> tuple[str, float]:
        """The log of the hold and its length."""
        if answers is not None:
            self.asking = self.agent(answers)
        _, output, seconds = self.run_slurm("slurmstepd", "batch", status, FAKE_JOB_MODE="1")
        return output, seconds

    def test_the_agent_is_asked_with_all_it_needs(self) -> None:
        self.hold("stop")
        line = "steward/1 ask kind=batch job=12 step=batch uid=1000 mode=1 attempt=1 restart=0 status=768"
        assert line in self.asking.lines

    def test_a_requeued_script_is_held_with_its_count(self) -> None:
        agent = self.agent("stop")
        self.run_slurm("slurmstepd", "batch", "768", FAKE_JOB_MODE="1", FAKE_RESTARTS="7")
        assert agent.asked()[0]["restart"] == "7"

    def test_a_script_that_ends_well_is_not_held(self) -> None:
        self.hold("wait,wait,wait", status="0")
        assert self.asking.asked() == []

    def test_a_script_that_a_signal_ended_is_held(self) -> None:
        for ended_by in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(ended_by):
                self.socket = str(self.folder / ended_by.name)
                self.hold("stop", status=str(int(ended_by)))
                assert self.asking.asked()[0]["status"] == str(int(ended_by))

    def test_only_a_script_that_slurm_lost_is_told_as_gone(self) -> None:
        lost = {"FAKE_LOSES_SCRIPT": "1"}
        for status, env, gone in (("512", lost, "gone"), ("512", {}, None), ("768", lost, None)):
            with self.subTest(status=status, **env):
                self.socket = str(self.folder / f"{status}{len(env)}")
                script = self.folder / "slurm_script"
                script.write_text("")
                agent = self.agent("stop")
                self.run_slurm("slurmstepd", "batch", status, FAKE_JOB_MODE="1", FAKE_SCRIPT=str(script), **env)
                assert agent.asked()[0].get("script") == gone

    def test_a_failing_step_that_is_no_script_is_not_held(self) -> None:
        agent = self.agent("wait,wait,wait")
        self.run_slurm("slurmstepd", "3", "768", FAKE_JOB_MODE="1")
        assert agent.asked() == []

    def test_stop_and_requeue_end_the_hold_at_once(self) -> None:
        for answer, said in (("stop", "not resumed"), ("requeue", "requeued")):
            with self.subTest(answer):
                self.socket = str(self.folder / answer)
                output, seconds = self.hold(f"wait,{answer}")
                assert f"job 12: {said}" in output
                assert 1 <= seconds < 1.8, seconds

    def test_an_answer_that_makes_no_sense_ends_the_hold_at_once(self) -> None:
        for answer in ("garbage,silent", "long,silent", "retry,silent", "ok,silent"):
            with self.subTest(answer):
                self.socket = str(self.folder / answer)
                output, seconds = self.hold(answer)
                assert "let go: the agent's answer is" in output
                assert seconds < 0.8

    def test_an_agent_that_never_said_a_word_and_hangs_up_ends_the_hold_at_once(self) -> None:
        process = self.start(["slurmstepd", "batch", "768"], env={"FAKE_JOB_MODE": "1", "FAKE_SECONDS": "1"})
        assert process.stdout
        assert any("no agent" in line for line in process.stdout), "at the start"
        agent = self.agent("sleep=0.1")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert "let go: the agent closed" in output
        assert len(agent.asked()) == 1

    def test_three_seconds_without_a_line_end_the_hold(self) -> None:
        for answer in ("silent", "dribble"):
            with self.subTest(answer):
                self.socket = str(self.folder / answer)
                output, seconds = self.hold(answer)
                assert "let go: the agent fell silent" in output
                assert 3 <= seconds < 3.8, seconds

    def test_a_frozen_agent_ends_the_hold_after_three_seconds(self) -> None:
        with socket.socket(socket.AF_UNIX) as frozen:
            frozen.bind(self.socket)
            frozen.listen(8)
            output, seconds = self.hold(None)
        assert "let go: the agent fell silent" in output
        assert 3 <= seconds < 3.8, seconds

    def test_an_agent_that_waits_for_ever_holds_no_longer_than_the_site_allows(self) -> None:
        self.hold_s = 2
        output, seconds = self.hold("wait,wait,wait,wait")
        assert "let go: the agent did not decide in time" in output
        assert 2 <= seconds < 2.8, seconds

    def test_without_an_agent_there_is_no_hold(self) -> None:
        output, seconds = self.hold(None)
        assert "let go: no agent there" in output
        assert seconds < 0.8

    def held(self) -> subprocess.Popen[str]:
        """A slurmstepd whose script has failed and is held."""
        process = self.start(["slurmstepd", "batch", "768"], env={"FAKE_JOB_MODE": "1"})
        assert process.stdout
        assert any("held for the agent" in line for line in process.stdout)
        return process

    def test_the_agents_restart_does_not_end_the_hold(self) -> None:
        first = self.agent("wait,wait,wait")
        process = self.held()
        await_condition(first.asked, "the agent is asked")
        first.close()
        time.sleep(0.5)  # a dead agent's socket refuses
        Path(self.socket).unlink()
        time.sleep(0.5)
        second = self.agent("wait,requeue")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert "job 12: requeued" in output
        assert second.lines == first.lines[1:], "the same is asked again"

    def test_an_agent_that_answered_at_the_start_is_waited_for_at_the_end(self) -> None:
        first = self.agent("stop")
        process = self.start(["slurmstepd", "batch", "768"], env={"FAKE_JOB_MODE": "1", "FAKE_SECONDS": "1"})
        await_condition(lambda: first.lines, "the agent knows the job")
        self.lose(first)
        time.sleep(2)
        self.agent("stop")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert "job 12: not resumed" in output

    def test_an_agent_that_stays_away_or_hangs_up_each_time_ends_the_hold_after_some_ten_seconds(self) -> None:
        self.hold_s = 60
        hanging_up = self.agent("wait=0")
        refused = self.held()
        self.socket = str(self.folder / "second")
        leaving = self.agent("wait,wait")
        left = self.held()
        await_condition(leaving.asked, "the agent is asked")
        self.lose(leaving)
        begin = time.monotonic()
        assert "let go: no agent there" in left.communicate(timeout=DEADLINE_S)[0]
        assert 9.5 <= time.monotonic() - begin < 13
        assert "let go: the agent closed the connection" in refused.communicate(timeout=DEADLINE_S)[0]
        assert len(hanging_up.asked()) == 51

    def test_a_site_may_forbid_the_hold(self) -> None:
        self.hold_s = 0
        output, _ = self.hold("wait")
        assert "let go: hold=0" in output
        assert self.asking.asked() == []


class Library(unittest.TestCase):
    """The file that Slurm loads."""

    def test_only_what_slurm_looks_for_is_exported(self) -> None:
        command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(LIBRARY)]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.splitlines()
        names = {line.split()[0] for line in symbols}
        variables = {"plugin_name", "plugin_type", "plugin_version", "spank_plugin_version"}
        calls = {"init", "init_post_opt", "local_user_init", "task_init", "task_exit"}
        assert names == variables | {f"slurm_spank_{call}" for call in calls}


if __name__ == "__main__":
    unittest.main()

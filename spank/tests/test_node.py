"""The shim in slurmstepd on a node: what it tells the agent and the job, and how long it may hold them at most."""

import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from bed import DEADLINE_S, FAKE_SLURM, ShimTest, await_condition


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

    def test_a_wrong_wish_that_no_sbatch_refused_is_told_in_the_jobs_output_once(self) -> None:
        _, output, _ = self.run_slurm("slurmstepd", "batch", "0", FAKE_JOB_MODE="any:x")
        told = [line for line in output.splitlines() if line.startswith("steward: ")]
        assert len(told) == 1, output
        assert told[0].startswith("steward: STEWARD_AUTO_RESUME: 'any:x' is not known: use 0, 1 or any:N")
        assert "steward: STEWARD" not in self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="any:x")[1]

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

    def test_an_agent_that_says_nothing_delays_a_later_run_by_three_seconds_at_most(self) -> None:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(self.socket)
            silent.listen(8)
            status, _, seconds = self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="1", FAKE_ATTEMPT="2")
        assert status == 0
        assert 3.0 <= seconds < 3.6

    def test_the_script_of_a_runs_base_waits_longer_for_its_coordinators_address(self) -> None:
        agent = self.agent("stop")
        agent.facts, agent.facts_after_s = " elastic_address=10.0.0.1:20000 elastic_token=abc", 0.8
        _, output, _ = self.base()
        assert "task STEWARD_ELASTIC_ADDRESS=10.0.0.1:20000" in output

    def test_the_script_of_a_runs_base_waits_for_an_agent_that_is_being_restarted(self) -> None:
        def come() -> None:
            self.agent("stop").facts = " elastic_address=10.0.0.1:20000 elastic_token=abc"

        timer = threading.Timer(0.7, come)
        timer.start()
        _, output, _ = self.base()
        timer.join()
        assert "task STEWARD_ELASTIC_ADDRESS=10.0.0.1:20000" in output
        assert "stays at its size" not in output

    def test_the_script_of_a_runs_base_begins_without_an_agent_after_three_seconds(self) -> None:
        status, output, seconds = self.base()
        assert status == 0
        assert "takes note of job 12" in output
        assert "steward: --elastic: this node's agent told of no coordinator in time" in output
        assert 3.0 <= seconds < 3.6

    def test_a_base_whose_agent_has_no_room_for_a_run_says_so_in_its_output(self) -> None:
        self.agent("stop")
        _, output, _ = self.base()
        assert "the run stays at its size" in output

    def base(self) -> tuple[int, str, float]:
        return self.run_slurm("slurmstepd", "batch", "0", FAKE_JOB_MODE="1", FAKE_ELASTIC="8:2", FAKE_ROLE="base")

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

    def test_what_a_training_script_imports_is_found_behind_the_users_own_modules(self) -> None:
        for step, own, all_of_it in (("batch", None, "/opt/s/job"), ("3", "/home/u/lib", "/home/u/lib:/opt/s/job")):
            self.agent("stop").facts = " python=/opt/s/job"
            env = {"FAKE_PYTHONPATH": own} if own else {}
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1", **env)
            assert f" PYTHONPATH={all_of_it}\n" in output, output
            self.socket = str(self.folder / "again")

    def test_a_resumed_script_has_one_line_about_it_in_its_output_and_a_step_has_none(self) -> None:
        self.agent("stop").facts = " resumed=1%20of%205,%20after%20n2%20failed"
        for step, mode, lines in (("batch", "1", 1), ("batch", "1,quiet=1", 0), ("3", "1", 0)):
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE=mode)
            assert output.count("steward: resumed, 1 of 5, after n2 failed\n") == lines, output

    def test_a_run_that_is_not_the_first_waits_for_its_past_longer(self) -> None:
        agent = self.agent("stop")
        agent.facts, agent.facts_after_s = " last_step=50", 0.8
        for step, env in (("batch", {"FAKE_RESTARTS": "1"}), ("3", {"FAKE_ATTEMPT": "2"})):
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1", **env)
            assert "STEWARD_LAST_STEP=50" in output, output

    def test_an_agent_that_says_that_it_is_still_there_is_waited_for(self) -> None:
        agent = self.agent("stop")
        agent.facts, agent.facts_after_s, agent.waits = " last_step=50", 0.8, 2
        _, output, _ = self.run_slurm("slurmstepd", "batch", "0", FAKE_JOB_MODE="1", FAKE_RESTARTS="1")
        assert "STEWARD_LAST_STEP=50" in output, output

    def test_a_warning_of_the_agents_is_one_line_in_the_scripts_output(self) -> None:
        self.agent("stop").facts = " warning=resuming%20is%20off"
        for step, lines in (("batch", 1), ("3", 0)):
            _, output, _ = self.run_slurm("slurmstepd", step, "0", FAKE_JOB_MODE="1")
            assert output.count("steward: resuming is off\n") == lines, output

    def test_without_an_agent_only_the_mode_is_set(self) -> None:
        _, output, _ = self.run_slurm("slurmstepd", "3", "0", FAKE_JOB_MODE="1")
        assert [line for line in output.splitlines() if line.startswith("stepd ")] == ["stepd STEWARD_AUTO_RESUME=1"]


class LeftBehind(ShimTest):
    """Processes of an earlier attempt that still run on the node."""

    LINE = "steward: left running here by an earlier attempt: 12 redis-server"

    def output(self, *argv: str, facts: str = " left_behind=12%20redis-server", **env: str) -> str:
        agent = self.agent("stop")
        agent.facts = facts
        return self.run_slurm("slurmstepd", *argv, FAKE_JOB_MODE="1", **env)[1]

    def test_they_are_named_where_the_next_run_or_attempt_begins(self) -> None:
        for argv, env in (("batch", {"FAKE_RESTARTS": "1"}), ("3", {"FAKE_ATTEMPT": "2"})):
            with self.subTest(argv):
                self.socket = str(self.folder / argv)
                assert self.LINE in self.output(argv, "0", **env)

    def test_no_line_without_any_and_in_a_first_attempt(self) -> None:
        assert self.LINE not in self.output("3", "0", FAKE_ATTEMPT="2", facts="")


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

    def test_a_script_that_was_swept_away_before_the_plugin_began_is_gone_too(self) -> None:
        for spool, gone in ((self.folder, "gone"), (self.folder / "not there", None)):
            with self.subTest(spool=spool.name):
                self.socket = str(self.folder / f"swept{gone}")
                agent = self.agent("stop")
                script = str(spool / "job00011" / "slurm_script")
                self.run_slurm("slurmstepd", "batch", "512", FAKE_JOB_MODE="1", FAKE_SCRIPT=script)
                assert agent.asked()[0].get("script") == gone

    def test_a_script_that_never_began_is_told_as_such(self) -> None:
        for why, status in (("TaskProlog", "256"), ("plugin", "0")):
            with self.subTest(why):
                self.socket = str(self.folder / why)
                script = self.folder / "slurm_script"
                script.write_text("")
                agent = self.agent("stop")
                env = {"FAKE_SCRIPT": str(script), "FAKE_UNBEGUN": why}
                self.run_slurm("slurmstepd", "batch", status, FAKE_JOB_MODE="1", **env)
                assert [(ask["script"], ask["status"]) for ask in agent.asked()] == [("unbegun", "256")]

    def test_a_script_that_ended_well_is_not_asked_about_at_the_end(self) -> None:
        script = self.folder / "slurm_script"
        script.write_text("")
        agent = self.agent("stop")
        self.run_slurm("slurmstepd", "batch", "0", FAKE_JOB_MODE="1", FAKE_SCRIPT=str(script))
        assert agent.asked() == []

    def test_a_failing_step_that_is_no_script_is_not_held(self) -> None:
        agent = self.agent("wait,wait,wait")
        self.run_slurm("slurmstepd", "3", "768", FAKE_JOB_MODE="1")
        assert agent.asked() == []

    def test_stop_and_requeue_end_the_hold_at_once(self) -> None:
        for answer, said in (("stop", "let go"), ("requeue", "requeued")):
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
        assert "job 12: let go" in output

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

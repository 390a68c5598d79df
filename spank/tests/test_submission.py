"""The shim in sbatch and salloc: what it hands on to the job, and which submissions it refuses."""

import os
import subprocess
import time
import unittest
from pathlib import Path

from bed import DEADLINE_S, FAKE_SLURM, ShimTest

LIBRARY = Path(FAKE_SLURM).parent / "steward.so"


class Submission(ShimTest):
    """sbatch and salloc."""

    def submit(self, *argv: str, **env: str) -> str:
        """What sbatch hands on."""
        here = {"SLURM_JOB_ID": "", "SBATCH_OPEN_MODE": "append"}
        status, output, _ = self.run_slurm("sbatch", *argv, **{**here, **env})
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

    def test_a_line_of_the_script_is_read_as_sbatch_reads_it(self) -> None:
        """Each tried on sbatch of 22.05: quotes, backslashes and comments."""
        no = "requeue=0"
        for line, becomes in (
            ('--comment="a --no-requeue b"', ""),
            ('--comment="a\\" --no-requeue b"', ""),
            ("--comment='a\" --no-requeue'", ""),
            ('--comment=a"x --no-requeue "b', ""),
            ("--comment=a#b --no-requeue", ""),
            ('--comment="a#b" --no-requeue', no),
            ("--comment=a\\#b --no-requeue", no),
            ("--comment=a\\ --no-requeue", no),
            ('"--no-requeue"', no),
            ("--no-'requeue'", no),
            ("--no-requeue#x", no),
            ("--comment=x\\", ""),
        ):
            with self.subTest(line=line):
                script = self.folder / "train.sh"
                script.write_text(f"#!/bin/bash\n#SBATCH {line}\n")
                assert self.requeue_of(str(script)) == becomes

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

    def test_sbatch_tells_that_a_restart_empties_the_output_file(self) -> None:
        script = self.folder / "train.sh"
        script.write_text("#!/bin/bash\n#SBATCH --open-mode=append\n")
        for argv, env, is_told in (
            (["--auto-resume=1"], {}, True),
            (["--auto-resume=0"], {}, False),
            ([], {}, False),
            (["--auto-resume=1", "--open-mode=truncate"], {}, False),
            (["--auto-resume=1", "--op=a"], {}, False),
            (["--auto-resume=1", str(script)], {}, False),
            (["--auto-resume=1"], {"SBATCH_OPEN_MODE": "append"}, False),
            (["--auto-resume=1,requeue=0"], {}, False),
            (["--auto-resume=1", "--no-requeue"], {}, False),
            (["--auto-resume=1,quiet=1"], {}, False),
        ):
            with self.subTest(argv=argv, **env):
                _, output, _ = self.run_slurm("sbatch", *argv, **{"SLURM_JOB_ID": "", **env})
                assert ("add --open-mode=append to keep" in output) == is_told, output

    def test_sbatch_tells_of_rules_for_the_output_that_nobody_can_use(self) -> None:
        for name, text in (("good", '\n{"enabled": true}'), ("list", "[]"), ("empty", ""), ("on", '{"on": true}')):
            (self.folder / name).write_text(text)
        os.mkfifo(self.folder / "fifo")
        good, none = f"HYPERPOD_HANG_RULES={self.folder}/good", f"HYPERPOD_HANG_RULES={self.folder}/none"
        script = self.folder / "train.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH --export=ALL,{none}\n")
        words = self.folder / "words.sh"
        words.write_text(f"#!/bin/bash\n#SBATCH --export '{none}'\n")
        lacks = 'it lacks "enabled": true'
        for argv, env, told in (
            ([f"--export=ALL,{good}"], {}, ""),
            ([f"--export={none},A=1"], {}, "No such file or directory (on this host)"),
            ([str(words)], {}, "No such file"),
            (["--auto-resume=1", f"--export=ALL,{none}"], {}, "No such file"),
            (["--auto-resume=1,quiet=1", f"--export=ALL,{none}"], {}, ""),
            ([str(script)], {}, "No such file"),
            ([f"--export=ALL,{good}", str(script)], {}, ""),
            ([f"--export=ALL,MY_{none}"], {}, ""),
            ([], {"HYPERPOD_HANG_RULES": f"{self.folder}/list"}, "it is no JSON object"),
            ([], {"HYPERPOD_HANG_RULES": f"{self.folder}/empty"}, "it is no JSON object"),
            ([], {"HYPERPOD_HANG_RULES": f"{self.folder}/on"}, lacks),
            ([], {"HYPERPOD_HANG_RULES": f"{self.folder}/fifo"}, "it is no file"),
            ([], {"HYPERPOD_HANG_RULES": f"{self.folder}"}, "it is no file"),
            ([], {"HYPERPOD_HANG_RULES": "rules.json"}, "must begin with /"),
        ):
            with self.subTest(argv=argv, **env):
                status, output, _ = self.run_slurm(
                    "sbatch", *argv, **{"SLURM_JOB_ID": "", "SBATCH_OPEN_MODE": "append", **env}
                )
                assert status == 0, output
                assert told in output, output
                assert ("HYPERPOD_HANG_RULES=" in output) == bool(told), output

    def test_salloc_and_srun_tell_where_the_option_has_no_effect(self) -> None:
        no_agent = "no agent runs on this host"
        _, output, _ = self.run_slurm("salloc", "--auto-resume=1", SLURM_JOB_ID="")
        assert no_agent in output, output
        self.agent("stop")
        _, output, _ = self.run_slurm("salloc", "--auto-resume=1", SLURM_JOB_ID="")
        assert no_agent not in output, output
        for argv, job, is_told in (
            (["--auto-resume=1"], "", True),
            (["--auto-resume=0"], "", False),
            ([], "", False),
            (["--auto-resume=1"], "12", False),
            (["--auto-resume=1,quiet=1"], "", False),
        ):
            with self.subTest(argv=argv, job=job):
                _, output, _ = self.run_slurm("srun", *argv, SLURM_JOB_ID=job)
                assert ("makes its own allocation" in output) == is_told, output

    def test_a_job_and_a_site_can_switch_the_lines_off_and_the_job_counts_more(self) -> None:
        (self.folder / "warning").write_text("resuming is off on this cluster\n")
        for site, own, lines in (
            ("", "", 1),
            ("", ",quiet=1", 0),
            (" quiet=1", "", 0),
            (" quiet=1", ",quiet=0", 1),
            (" quiet=0", "", 1),
        ):
            with self.subTest(site=site, own=own):
                told = self.submit(f"--auto-resume=1{own}", FAKE_PLUGSTACK=f"socket={self.socket}{site}")
                assert len(told.splitlines()) == 1 + lines, told

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
        here = {"SLURM_JOB_ID": "", "SBATCH_OPEN_MODE": "append"}
        status, output, _ = self.run_slurm("sbatch", *argv, **{**here, **env})
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


class Library(unittest.TestCase):
    """The file that Slurm loads."""

    def test_only_what_slurm_looks_for_is_exported(self) -> None:
        command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(LIBRARY)]
        symbols = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.splitlines()
        names = {line.split()[0] for line in symbols}
        variables = {"plugin_name", "plugin_type", "plugin_version", "spank_plugin_version"}
        calls = {"init", "init_post_opt", "local_user_init", "task_init", "task_exit", "exit"}
        assert names == variables | {f"slurm_spank_{call}" for call in calls}


if __name__ == "__main__":
    unittest.main()

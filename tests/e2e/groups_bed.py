"""A bed whose nodes come with groups: access keys for AWS clients, settings changed on the way, all of it cleared."""

import json
import os
import secrets
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from steward_bed.bed import Backend, Bed, BedError
from steward_bed.docker_files import MOUNT
from steward_bed.faults import FaultKind
from steward_bed.wait import wait_until, wait_until_empty
from tests.e2e.story import Story

CLIENT_S = 20.0
HEAD_S = 20.0
_REGION = "steward-1"
_KEY = "AKIDENDTOENDTESTS001"
_GONE_S = 60.0
_RATES = {"reads_per_s": 1000, "writes_per_s": 1000}


@dataclass(frozen=True, slots=True)
class Access:
    """How AWS clients reach a bed's head."""

    url: str
    secret: str

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ENDPOINT_URL_SAGEMAKER": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        return boto3.client(
            "sagemaker",
            endpoint_url=self.url,
            region_name=_REGION,
            aws_access_key_id=_KEY,
            aws_secret_access_key=self.secret,
            config=Config(connect_timeout=5, read_timeout=CLIENT_S, retries={"total_max_attempts": 1}),
        )

    def aws(self, home: Path, *words: str) -> Any:
        """`aws sagemaker ...`: its answer. Raises BedError with what it said when it fails."""
        env = {"PATH": os.environ["PATH"], "HOME": str(home), **self.env}
        argv = [str(Path(sys.executable).with_name("aws")), "sagemaker", *words, "--output", "json"]
        done = subprocess.run(argv, env=env, capture_output=True, timeout=CLIENT_S * 3, check=False)
        if done.returncode != 0:
            raise BedError(done.stderr.decode().strip())
        return json.loads(done.stdout or b"null")


def give_access(bed: Bed) -> Access:
    """Make an access key on the controller and have the head take it, or return the one that was made before."""
    made = bed.spec.dir / "etc" / "keys.toml"
    if made.exists():
        return Access(bed.env["STEWARD_URL"], tomllib.loads(made.read_text())["keys"][_KEY]["secret"])
    secret = secrets.token_hex(20)
    inside = MOUNT if bed.spec.backend is Backend.DOCKER else bed.spec.dir
    path = inside / "etc" / "keys.toml"
    text = f'[keys.{_KEY}]\nsecret = "{secret}"\nuser = "platform"\n'
    owner = ["chown", "slurm", str(path)] if bed.spec.backend is Backend.DOCKER else ["true"]
    bed.run(["install", "-m", "0600", "/dev/null", str(path)])
    bed.run(owner)
    bed.run(["sh", "-c", f"cat > {path} <<'END'\n{text}END"])
    configure(bed, {"api": {"keys_file": str(path), **_RATES}})
    return Access(bed.env["STEWARD_URL"], secret)


def configure(bed: Bed, tables: Mapping[str, Mapping[str, object]]) -> str:
    """Change settings and start the head anew with them; the file as it was before."""
    file = bed.spec.dir / "etc" / "steward.toml"
    before = file.read_text()
    text = before
    for section, values in tables.items():
        for key, value in values.items():
            text = _with(text, section, f"{key} = {json.dumps(value)}")
    rewrite(bed, text)
    return before


def rewrite(bed: Bed, settings: str) -> None:
    story = Story(bed, bed.shared)
    story.hurt(FaultKind.KILL_HEAD)
    (bed.spec.dir / "etc" / "steward.toml").write_text(settings)
    story.hurt(FaultKind.START_HEAD)
    wait_until("the head answers", lambda: story.get("/v1/status"), HEAD_S)


def _with(text: str, section: str, line: str) -> str:
    key = line.partition(" = ")[0]
    head, found, rest = text.partition(f"[{section}]\n")
    if not found:
        return f"{text}\n[{section}]\n{line}\n"
    own, mark, others = rest.partition("\n[")
    kept = [each for each in own.splitlines() if each.partition(" = ")[0] != key]
    return head + found + "\n".join([line, *kept]) + "\n" + mark + others


def clear(bed: Bed, access: Access) -> None:
    """No fault, no job, no cluster, no node: as after `up`."""
    story = Story(bed, bed.shared)
    wait_until("every fault is undone", lambda: _restored(bed), HEAD_S, every_s=0.2)
    bed.run(["scancel", "--user=root"], check=False)
    wait_until_empty("no job is left", lambda: _jobs(bed), _GONE_S, every_s=0.2)
    wait_until("the cluster is gone", lambda: _delete(access), _GONE_S, every_s=0.2)
    wait_until_empty("no machine is left", lambda: bed.status().nodes, _GONE_S, every_s=0.2)
    wait_until_empty("no case is open", lambda: [c for c in story.cases() if c["open"]], _GONE_S, every_s=0.2)


def _restored(bed: Bed) -> bool:
    """Raises BedError, which counts as not yet, for a machine that Steward is ending at this moment."""
    bed.restore()
    return True


def _jobs(bed: Bed) -> list[str]:
    jobs = bed.run(["squeue", "--noheader", "--all", "--format=%A %T %P"]).text.splitlines()
    if jobs:
        bed.run(["scancel", *sorted({job.split()[0] for job in jobs})], check=False)
    return jobs


def _delete(access: Access) -> bool:
    """Ask for it unless it is going already; true when there is none."""
    api = access.client()
    try:
        there = api.list_clusters()["ClusterSummaries"]
        if there and there[0]["ClusterStatus"] != "Deleting":
            api.delete_cluster(ClusterName=there[0]["ClusterName"])
    except BotoCoreError as error:
        raise BedError(f"the head does not answer: {error}") from error
    return not there

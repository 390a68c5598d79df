"""The dashboard and the alert rules that we ship: a real Prometheus that scrapes a head understands each query."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from steward.model.leadership import Heads
from steward_bed.local_setup import free_ports
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import an_api
from tests.fakes.until import FACT_S, until

FOLDER = Path(__file__).parents[2] / "monitoring"
RULES = FOLDER / "steward-alerts.yml"
_ENDING = re.compile(r"_(bucket|count|sum|created)$")
_VARIABLE = re.compile(r"\$(cluster|instance)\b")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A Prometheus, and the names of what its head tells."""

    url: str
    names: frozenset[str]

    def ask(self, path: str, **query: str) -> Any:
        answer = requests.get(f"{self.url}/api/v1/{path}", params=query, timeout=FACT_S).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, text: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=text)["result"]
        return found

    def is_scraping(self) -> bool:
        try:
            return bool(self.query('up{job="steward"} == 1'))
        except requests.RequestException:
            return False


LEADS = Heads(
    is_mine=True,
    picture_s=None,
    leader="head1:6861",
    epoch=1,
    since=1.0,
    is_beside_slurmctld=True,
    trouble="",
    others=(),
)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("prometheus")
    with an_api() as api:
        api.show(a_cluster().job().opted_in().lost("n2"))
        api.heads = LEADS
        told = requests.get(f"{api.url}/metrics", timeout=FACT_S).text
        (port,) = free_ports(1)
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {"job_name": "steward", "static_configs": [{"targets": [api.url.removeprefix("http://")]}]}
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        argv = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*argv, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            names = frozenset(re.findall(r"^# TYPE (\S+)", told, re.MULTILINE))
            found = Watched(url=f"http://127.0.0.1:{port}", names=names)
            until("Prometheus scrapes the head", found.is_scraping, 120.0)
            yield found
        finally:
            process.terminate()
            process.wait(30)


def queries() -> list[str]:
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    found += [one["expr"] for one in dashboard["annotations"]["list"]]
    return [_VARIABLE.sub(".*", one).replace("$__range", "1d").replace("$__rate_interval", "5m") for one in found]


def names_in(query: str) -> set[str]:
    return {_ENDING.sub("", name) for name in re.findall(r"\bsteward_[a-z0-9_]+", query)}


def test_every_query_of_the_dashboard_is_understood_and_names_what_the_head_tells(watched: Watched) -> None:
    assert len(queries()) > 10
    for query in queries():
        watched.query(query)
        assert names_in(query) <= watched.names, query
    verdicts = next(query for query in queries() if "by (verdict)" in query)
    assert [one["value"][1] for one in watched.query(verdicts) if one["metric"].get("verdict") == "lost"] == ["1"]


def test_every_alert_rule_is_right_and_names_what_the_head_tells(watched: Watched) -> None:
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, timeout=300, stdout=subprocess.DEVNULL)

    def rules() -> list[dict[str, Any]]:
        return [rule for group in watched.ask("rules")["groups"] for rule in group["rules"]]

    until("each rule was evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()), 120.0)
    assert len(rules()) >= 7
    for rule in rules():
        assert rule["health"] == "ok", rule
        assert names_in(rule["query"]) <= watched.names, rule
        assert rule["annotations"]["description"]
        page, _, section = rule["annotations"]["runbook"].partition("#")
        headings = _HEADING.findall((FOLDER.parent / page).read_text())
        assert section in [heading.lower().replace(" ", "-") for heading in headings], rule["name"]


def test_each_alert_has_a_story_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    stories = RULES.with_name("steward-alerts-test.yml")
    subprocess.run(["promtool", "test", "rules", str(stories)], check=True, timeout=300, stdout=subprocess.DEVNULL)
    told = re.findall(r"- name: (\w+) (fires|does not fire)", stories.read_text())
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert sorted(told) == sorted((alert, word) for alert in alerts for word in ("fires", "does not fire"))

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

from steward.testbed.local_setup import free_ports
from tests.builders.picture import a_cluster
from tests.fakes.api_bench import an_api
from tests.fakes.until import FACT_S, until

FOLDER = Path(__file__).parents[2] / "monitoring"
RULES = FOLDER / "steward-alerts.yml"
_ENDING = re.compile(r"_(bucket|count|sum|created)$")


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


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("prometheus")
    with an_api() as api:
        api.show(a_cluster().job().opted_in().lost("n2"))
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
    panels = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def names_in(query: str) -> set[str]:
    return {_ENDING.sub("", name) for name in re.findall(r"\bsteward_[a-z_]+", query)}


def test_every_query_of_the_dashboard_is_understood_and_names_what_the_head_tells(watched: Watched) -> None:
    assert len(queries()) > 10
    for query in queries():
        watched.query(query)
        assert names_in(query) <= watched.names, query
    (lost,) = [one for one in watched.query(queries()[0]) if one["metric"]["verdict"] == "lost"]
    assert lost["value"][1] == "1"


def test_every_alert_rule_is_right_and_names_what_the_head_tells(watched: Watched) -> None:
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def rules() -> list[dict[str, Any]]:
        return [rule for group in watched.ask("rules")["groups"] for rule in group["rules"]]

    until("each rule was evaluated", lambda: all(rule["health"] != "unknown" for rule in rules()), 120.0)
    assert len(rules()) >= 7
    for rule in rules():
        assert rule["health"] == "ok", rule
        assert names_in(rule["query"]) <= watched.names, rule
        assert rule["annotations"]["description"]

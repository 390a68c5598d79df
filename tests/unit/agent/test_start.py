"""What the start of an agent costs."""

import subprocess
import sys


def test_an_agent_imports_none_of_the_records_that_only_the_head_makes() -> None:
    """To make their classes took a fifth of the time of a start."""
    heads = {f"steward.model.{name}" for name in ("action", "observed", "memory", "case", "accounting")}
    code = f"import sys, steward.agent.serve; print(sorted({heads} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


def test_an_agent_imports_no_package_of_others_but_the_service_managers() -> None:
    """What one of them takes, a compute node's jobs do not have: pydantic alone took 10 MiB."""
    code = """
import sys, steward.agent.serve
known = {*sys.stdlib_module_names, "steward", "systemd", "__main__"}
tops = {name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}
print(sorted(one for one in tops - known if not one.startswith(("_", "sitecustomize", "usercustomize"))))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


def test_an_agent_looks_for_garbage_once_it_serves_and_not_while_it_imports() -> None:
    """That took a seventh of the time of a start."""
    code = """
import gc, sys
from steward.agent import __main__ as agent
imported = agent.import_module
def counted(name):
    before = gc.get_stats()
    module = imported(name)
    print(gc.get_stats() == before)
    module.load = lambda *told: print(gc.isenabled(), gc.get_freeze_count() > 10_000)
    module.asyncio.run = lambda work: work.close()
    return module
agent.import_module = counted
sys.exit(agent.main(["--config", "none"]))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.splitlines() == ["True", "True True"]


def test_an_agent_does_not_load_tls() -> None:
    code = """
import sys
from steward.agent import __main__ as agent
def started(name):
    module = imported(name)
    module.start = lambda *told: print(sys.modules["ssl"], "_ssl" in sys.modules)
    return module
imported, agent.import_module = agent.import_module, started
agent.main([])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.splitlines() == ["None False"]

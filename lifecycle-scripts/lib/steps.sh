#!/usr/bin/env bash
# What all steps share. Sourced, never run. A test may set ROOT to a folder that stands for / in the files they write.

ROOT=${ROOT:-}
RESOURCE_CONFIG=${SAGEMAKER_RESOURCE_CONFIG_PATH:-/opt/ml/config/resource_config.json}
PARAMETERS=${PARAMETERS:-$(dirname "$RESOURCE_CONFIG")/provisioning_parameters.json}

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*"; }

fail() {
  say "error: $*" >&2
  exit 1
}

# query FILE KEY...: the text at that place of a JSON file; nothing where there is none. Lists print one item a line.
query() {
  python3 - "$@" <<'PYTHON'
import json
import sys

try:
    with open(sys.argv[1]) as file:
        value = json.load(file)
except FileNotFoundError:
    sys.exit(0)
for key in sys.argv[2:]:
    value = value.get(key) if isinstance(value, dict) else None
if isinstance(value, list):
    print("\n".join(str(item) for item in value))
elif isinstance(value, bool):
    print(str(value).lower())
elif value is not None and not isinstance(value, dict):
    print(value)
PYTHON
}

parameter() { query "$PARAMETERS" "$@"; }

# The API's word: Controller, Login or Compute.
role() { printf '%s\n' "${STEWARD_ROLE:-Compute}"; }

# Where slurmctld is.
controller() {
  local address
  address=$(query "$RESOURCE_CONFIG" SlurmConfig PrimaryControllerIp)
  printf '%s\n' "${address:-${STEWARD_HEAD:-}}"
}

# wait_until SECONDS "what is awaited" COMMAND...: tries once a second.
wait_until() {
  local limit=$1 what=$2 end
  shift 2
  end=$((SECONDS + limit))
  until "$@"; do
    ((SECONDS < end)) || fail "not within $limit s: $what"
    sleep 1
  done
}

# write FILE: replaces it with stdin, never leaving half a file; one that is the same already is left alone. CHANGED tells.
write() {
  local new
  CHANGED=0
  mkdir -p "$(dirname "$1")"
  new=$(mktemp "$1.XXXXXX")
  if ! { cat >"$new" && chmod 0644 "$new"; }; then
    rm -f "$new"
    fail "cannot write $1"
  fi
  if cmp -s "$new" "$1"; then
    rm "$new"
  elif mv "$new" "$1"; then
    # shellcheck disable=SC2034  # for the caller
    CHANGED=1
  else
    rm -f "$new"
    fail "cannot replace $1"
  fi
}

have() { command -v "$1" >/dev/null 2>&1; }

#!/usr/bin/env bash
# Waits until the cluster is described on this node, and the controller has a name that resolves or an address.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/steps.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/steps.sh"

is_described() { [[ -n $(query "$RESOURCE_CONFIG" ClusterConfig ClusterName 2>/dev/null) ]]; }
resolves() { getent ahosts "$(controller)" >/dev/null; }

wait_until "${WAIT_FOR_CONFIG_S:-60}" "$RESOURCE_CONFIG with the cluster's name" is_described
[[ -n $(controller) ]] || fail "$RESOURCE_CONFIG names no controller and STEWARD_HEAD is empty"
wait_until "${WAIT_FOR_CONFIG_S:-60}" "the address of the controller $(controller)" resolves

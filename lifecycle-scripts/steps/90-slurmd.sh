#!/usr/bin/env bash
# Starts slurmd on a compute node; login nodes and the controller run none.
#
# Without a slurm.conf on the node it gets its configuration from the controller (configless). A node that slurm.conf
# does not name registers itself (`-Z`) with the features of its group, drained until Steward has verified it.
# Parameters: "dynamic_nodes" false where slurm.conf names the nodes and is not on them; "slurmctld_port"; "slurmd_gres".
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/steps.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/steps.sh"

NODE=${STEWARD_NODE:?not set: this step is run by Steward}
CONF=${SLURM_CONF:-$ROOT/etc/slurm/slurm.conf}
DROP_IN=$ROOT/etc/systemd/system/slurmd.service.d/steward.conf

if [[ $(role) != Compute ]]; then
  say "a $(role) node runs no slurmd"
  exit 0
fi
SLURMD=$(command -v slurmd) || fail "this image has no slurmd: put the controller's version of Slurm into it"

argv=(-N "$NODE")
if [[ ! -e $CONF ]]; then
  server=$(controller)
  [[ -n $server ]] || fail "no controller is known: neither resource_config.json nor STEWARD_HEAD names it"
  [[ $server == *:* ]] && server="[$server]"
  port=$(parameter slurmctld_port)
  argv+=(--conf-server "$server:${port:-6817}")
fi

# Slurm also knows a node that registered itself before: that one must go on doing so.
is_named() {
  local shown
  [[ -e $CONF ]] && shown=$(timeout 20 scontrol show node "$NODE" 2>/dev/null) && [[ $shown != *+DYNAMIC_* ]]
}

dynamic=$(parameter dynamic_nodes)
if [[ $dynamic == true ]] || { [[ $dynamic != false ]] && ! is_named; }; then
  gres=$(parameter slurmd_gres)
  argv+=(-Z --conf "Feature=${STEWARD_FEATURES:-${STEWARD_GROUP:-steward}} State=DRAIN${gres:+ Gres=$gres}")
fi

# To systemd a slurmd is active that is about to give up, too.
answers() { systemctl is-active --quiet slurmd && timeout 20 scontrol show slurmd >/dev/null 2>&1; }

# `simple` whatever the package's unit says: newer slurmds are `notify`, and do not notify when run with -D.
start_by_systemd() {
  local quoted
  quoted=$(printf ' "%s"' "${argv[@]}")
  write "$DROP_IN" <<UNIT
# Written by Steward's lifecycle step 90-slurmd.
[Unit]
ConditionPathExists=
[Service]
Type=simple
ExecStart=
ExecStart=$SLURMD -D -s${quoted//%/%%}
UNIT
  systemctl daemon-reload
  systemctl enable --quiet slurmd
  if ((CHANGED)); then systemctl restart slurmd; else systemctl start slurmd; fi
  wait_until "${SLURMD_S:-20}" "slurmd answers on this node (journalctl -u slurmd tells more)" answers
}

is_running() { pgrep -f -- "slurmd.* -N $NODE( |\$)" >/dev/null; }

# Containers without an init.
start_alone() {
  if is_running; then
    say "slurmd of $NODE runs already"
    return 0
  fi
  "$SLURMD" "${argv[@]}"
  wait_until 20 "slurmd of $NODE runs" is_running
}

say "slurmd ${argv[*]}"
if [[ -d $ROOT/run/systemd/system ]]; then start_by_systemd; else start_alone; fi

#!/usr/bin/env bash
# OnCreate: runs the steps one after the other, as root, on a machine that is new (or is set up again).
#
# usage: on_create.sh [STEP...]        without names: every file of steps/, in the order of their numbers
#
# Each step is a program of its own that may be run alone and any number of times. The first that fails ends the setup
# with its status; the node then takes no work.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=lib/steps.sh
. "$here/lib/steps.sh"

names=("$@")
if ((${#names[@]} == 0)); then
  for file in "$here"/steps/[0-9]*.sh; do
    names+=("$(basename "$file" .sh)")
  done
fi

say "on_create: node ${STEWARD_NODE:-?}, group ${STEWARD_GROUP:-?}, role $(role)"
for name in "${names[@]}"; do
  began=$SECONDS
  say "step $name"
  status=0
  bash "$here/steps/$name.sh" || status=$?
  if ((status != 0)); then
    say "step $name failed with status $status"
    exit "$status"
  fi
  say "step $name done in $((SECONDS - began)) s"
done

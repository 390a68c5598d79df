#!/usr/bin/env bash
# What jobs need for containers: "containers" in provisioning_parameters.json lists "docker", "enroot" or both.
# Installs from the node's package sources what is not there; pyxis comes with the site's Slurm (see README.md).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/steps.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/steps.sh"

install() {
  local package=$1 program=$2
  if have "$program"; then
    say "$program is there"
    return 0
  fi
  have apt-get || fail "$program is missing and this image has no apt-get: put it into the image"
  wait_until "${APT_S:-300}" "package lists and $package" try_install "$package"
}

try_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=60 -qq update &&
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=60 -qq -y --no-install-recommends install "$1"
}

while read -r word; do
  case $word in
  docker) install docker.io docker ;;
  enroot) install enroot enroot ;;
  '') ;;
  *) fail "containers: '$word' is neither docker nor enroot" ;;
  esac
done < <(parameter containers)

#!/usr/bin/env bash
# Mounts what provisioning_parameters.json names, now and at every boot; nothing where it names nothing.
#   fsx_dns_name + fsx_mountname   Lustre at /fsx (fsx_mount_point)
#   fsx_openzfs_dns_name           NFS export /fsx at /home (openzfs_mount_point)
#   nfs_server + nfs_export        any NFS at /shared (nfs_mount_point)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/steps.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/steps.sh"

FSTAB=$ROOT/etc/fstab
NFS_OPTIONS=nfsvers=4.1,_netdev,noatime,hard,timeo=600

# mount_at WHAT WHERE TYPE OPTIONS
mount_at() {
  local what=$1 where=$2 type=$3 options=$4 now
  [[ $where == /* && $where != / ]] || fail "mount point '$where' is not a path below /"
  mkdir -p "$ROOT$where"
  remember "$what $where $type $options 0 0" "$where"
  now=$(findmnt --noheadings --output SOURCE --mountpoint "$where" || true)
  if [[ $now == "$what" ]]; then
    say "$where is mounted already"
  elif [[ -n $now ]]; then
    fail "$where is taken by $now; wanted $what"
  else
    wait_until "${MOUNT_S:-120}" "$what at $where" mount "$where"
    say "mounted $what at $where"
  fi
}

# One line of fstab for each mount point, whatever was there before.
remember() {
  local line=$1 where=$2 old words kept=()
  touch "$FSTAB"
  while IFS= read -r old; do
    read -r -a words <<<"$old"
    [[ ${words[0]-} != \#* && ${words[1]-} == "$where" ]] || kept+=("$old")
  done <"$FSTAB"
  printf '%s\n' "${kept[@]}" "$line" | write "$FSTAB"
}

dns=$(parameter fsx_dns_name)
name=$(parameter fsx_mountname)
if [[ -n $dns && -n $name ]]; then
  have mount.lustre || fail "this image has no Lustre client: put it into the image"
  at=$(parameter fsx_mount_point)
  mount_at "$dns@tcp:/$name" "${at:-/fsx}" lustre noatime,flock,_netdev
fi

dns=$(parameter fsx_openzfs_dns_name)
if [[ -n $dns ]]; then
  have mount.nfs || fail "this image has no NFS client: put it into the image (Debian: nfs-common)"
  at=$(parameter openzfs_mount_point)
  mount_at "$dns:/fsx" "${at:-/home}" nfs "$NFS_OPTIONS"
fi

server=$(parameter nfs_server)
export=$(parameter nfs_export)
if [[ -n $server && -n $export ]]; then
  have mount.nfs || fail "this image has no NFS client: put it into the image (Debian: nfs-common)"
  at=$(parameter nfs_mount_point)
  mount_at "$server:$export" "${at:-/shared}" nfs "$NFS_OPTIONS"
fi

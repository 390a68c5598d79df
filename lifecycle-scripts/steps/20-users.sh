#!/usr/bin/env bash
# Makes the users of shared_users.txt with the same ids on every node. Lines are `name,uid,home`; `#` begins a comment.
# The file lies beside the scripts, or where the parameter "shared_users_file" says.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/steps.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/steps.sh"

file=$(parameter shared_users_file)
file=${file:-$(dirname "${BASH_SOURCE[0]}")/../shared_users.txt}
if [[ ! -f $file ]]; then
  say "no $file: no users to make"
  exit 0
fi

add() {
  local name=$1 uid=$2 home=$3 known
  [[ $name =~ ^[a-z_][a-z0-9_-]{0,31}$ && $uid =~ ^[0-9]{4,9}$ && $home == /* ]] ||
    fail "$file: '$name,$uid,$home' is not name,uid,home"
  known=$(getent passwd "$name" | cut -d: -f3 || true)
  if [[ -n $known ]]; then
    [[ $known == "$uid" ]] || fail "user $name has uid $known here and $uid in $file: correct one of them"
    return 0
  fi
  getent group "$name" >/dev/null || groupadd --gid "$uid" "$name"
  # The home may be on a shared file system that comes later, or be there from another node.
  useradd --uid "$uid" --gid "$name" --no-create-home --home-dir "$home" --shell /bin/bash "$name"
  say "made user $name ($uid)"
}

while IFS=, read -r name uid home rest; do
  name=${name//[[:space:]]/}
  [[ -z $name || $name == \#* ]] && continue
  [[ -z $rest ]] || fail "$file: too many fields in the line of $name"
  add "$name" "${uid//[[:space:]]/}" "${home//[[:space:]]/}"
done <"$file"

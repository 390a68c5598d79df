"""A stand-in for LBNL Node Health Check 1.4.3, for machines without it: what is set when, and who marks a node."""

NHC = r"""#!/bin/bash
# Each argument is evaluated, then the host's settings of that name are read, then the configuration line by line.
SYSCONFIGDIR=${STAND_IN_SETTINGS:-/etc/default}
NAME=nhc
unset CONFFILE LOGFILE SILENT TIMEOUT NHC_RM MARK_OFFLINE OFFLINE_NODE ONLINE_NODE

die() {
    local status=$1
    shift
    [[ $SILENT == 0 ]] && echo "ERROR:  $NAME:  Health check failed:  $*"
    [[ -n $NHC_RM && $MARK_OFFLINE -eq 1 ]] && eval "$OFFLINE_NODE" "'$HOSTNAME'" "'$*'"
    if [[ $NHC_RM == sge ]]; then
        return 77
    elif [[ -n $LOGFILE && $SILENT == 0 ]]; then
        echo "ERROR:  $NAME:  Health check failed:  $*" >&3
    fi
    exit "$status"
}

check_file_test() { [ "$1" "$2" ] || die 1 "check_file_test:  $1 $2 returned 1."; }

nhcmain_mark_online() { [[ -n $NHC_RM && $MARK_OFFLINE -eq 1 ]] && eval "$ONLINE_NODE" "'$HOSTNAME'"; }

arguments() {
    for each in "$@"; do eval "$each"; done
}

arguments "$@"
[[ ! -f $SYSCONFIGDIR/$NAME ]] || . "$SYSCONFIGDIR/$NAME"
: "${CONFFILE:=/etc/nhc/$NAME.conf}" "${LOGFILE:=>>/var/log/$NAME.log 2>&1}" "${SILENT:=0}" "${MARK_OFFLINE:=1}"
: "${NHC_RM:=slurm}" "${OFFLINE_NODE:=node-mark-offline}" "${ONLINE_NODE:=node-mark-online}"
exec 3>&1
eval exec "$LOGFILE"
while read -r match bars check; do
    [[ $bars == "||" ]] || continue
    # shellcheck disable=SC2053
    [[ $HOSTNAME == $match ]] || continue
    eval "$check"
    status=$?
    ((status == 0)) || die "$status" "Check $check returned $status"
done <"$CONFFILE"
nhcmain_mark_online
exit 0
"""

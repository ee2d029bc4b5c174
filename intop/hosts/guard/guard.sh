#!/bin/sh
# The guard of a tuned host: everything here runs on the host, and needs nothing but a POSIX
# shell, coreutils, grep, sed and /proc. Keys are paths below /proc/sys.
#
# On a small or emulated host a process takes longer than all else here, so there is none for each
# key, and few in what runs every second or every trial. `read` does not do for /proc/sys: shells
# read byte by byte, and most keys end after their first byte then.
#
#   guard.sh DIR begin TOKEN LEASE OWNER own|originals [RESTART]
#                                          paths of keys on stdin, and of nginx's files, which begin
#                                          with a slash; takes the lock, stores the snapshot,
#                                          arms the watchdog, prints reports, what is applied, and
#                                          the snapshot; originals: also guards the keys of what is
#                                          applied, and prints their values from before that;
#                                          RESTART: what restarts nginx, and what a report says
#                                          to type for that
#   guard.sh DIR write TOKEN [reload|restart DRAIN]
#                                          "path value" lines on stdin; writes, prints what all
#                                          guarded keys are then; "/N SUM TEXT" lines give the N-th
#                                          of nginx's files a text, "/N own" its own, and nginx
#                                          takes them by a reload or restart; its old workers are
#                                          waited for as long as DRAIN s
#   guard.sh DIR renew TOKEN               a sign of life
#   guard.sh DIR end TOKEN                 restores the snapshot, checks it, gives the lock back
#   guard.sh DIR keep TOKEN [FILE SHA256]  ends the session with its values left as they are, and
#                                          FILE, if any, in place; what and why on stdin (see there)
#   guard.sh DIR status                    who holds the host, what is changed, what is applied
#                                          and has become of that, what was reported
#   guard.sh DIR rollback [force]          restores without a token, gives the lock back, undoes
#                                          what is applied
#   guard.sh DIR accept                    forgets what could not be restored: the values of now are
#                                          the host's own
#   guard.sh DIR watch TOKEN               the watchdog itself; ends with 3 when its work is done
#   guard.sh DIR boot UNIT                 what a reboot has cut off, called by UNIT at the start
#
# Exit codes: 0 done, 1 failed, 73 the folder can't be written, 75 held by somebody else, 76 the
# lock is not (or no longer) ours, 77 nothing to roll back, 78 somebody else has changed a key,
# 79 the values stay, and something else of a keep could not be done, 80 values of an earlier session
# are not back, 81 nginx refuses the files, which are as they were found. Each answer ends with a line "end", a tab and the code: without it, it was cut off.
#
# In DIR: `lock` while a session has the host, `restoring.ID` while process ID restores,
# `unrestored.N.ID` with what it could not, which the watchdog tries again every minute, `report` for the next session, `report.old` thereafter,
# and this script as guard-HASH.sh; guard.sh is a link to the last one that was installed. An ID is a
# process's number and its start: numbers come again. What is made is made beside its place, what
# goes is moved away first (`making.ID`, `undone.ID`): nothing of it is ever there half.
#
# In each of the folders: `snapshot`, the keys before; `left`, the keys as our last write left them;
# `inflight`, the keys that a write has begun with; `armed.TOKEN`, which whoever takes the lock away
# renames first, so that only one can; `token`, which comes last: nothing is written before.
#
# `applied.N` is the record of what stays, the one with the highest N; what a later apply replaces
# has a lower one, and goes. It has a snapshot and `left` as above, `about` with a name and a word in
# each line, and `file` with path and SHA-256 of our file, if any. A keep makes it as lock/record, and
# renames it: that is when what it does becomes true. Where nginx's files stay changed, it has those
# of a session's folder that a restore needs, and `directives`, a line of key, value before and value
# each. Until then whoever takes the lock away undoes
# it, and thereafter ends it, by lock/input (a keep has begun) and lock/draft (its file's names).
#
# Each network namespace has keys of its own, and one list of the folders in which sessions began.
# Who begins looks into all of them, after taking the lock in its own: of two at once, one sees the other.
# `boot` and `network` say whose keys a folder is about: with a namespace its keys are gone, as with a boot.
set -u
# A value is bytes, whatever the host's language.
export LC_ALL=C
dir=$1
verb=$2
token=${3-}
lock=$dir/lock
lists=/run/intop-guard
units=/etc/systemd/system
force=
anew=
network=
silent=0
tab=$(printf '\t')
newline='
'
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
# The script's own name, which is not the link's: the file behind that changes.
self=${0##*/}
if [ -L "$0" ]; then
    self=$(readlink "$0")
    self=${self##*/}
fi

@guard/basics.sh@

@guard/keys.sh@

@trust.sh@

@guard/nginx.sh@

@guard/files.sh@

@guard/write_files.sh@

@guard/lock.sh@

@guard/watch.sh@

@guard/restore.sh@

@guard/report.sh@

@guard/begin.sh@

@guard/write.sh@

@guard/keep.sh@

@guard/rollback.sh@

@guard/status.sh@

# All of the script has been read by now: of half of it nothing is run.
{
    case $verb in
    status | rollback)
        # shellcheck disable=SC2093
        ! another_version || exec sh "$dir/$line" "$@"
        ;;
    begin | write | renew | end | keep | accept | watch | boot) ;;
    *)
        echo "unknown verb: $verb" >&2
        exit 1
        ;;
    esac
    identify "$$" || {
        echo "/proc shows no processes, so nobody can tell who is at work here" >&2
        exit 1
    }
    me=$process
    if [ "$verb" != watch ]; then
        # A restore goes on where nobody hears its answer.
        trap '' PIPE HUP
        trap 'printf "end\t%s\n" "$?"' EXIT
    fi
    "do_$verb" "$@"
    exit
}

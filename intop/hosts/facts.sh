# NAME=VALUE on each line. `version` prints the server's, such as nginx/1.22.1.
@trust.sh@
@nginx_masters.sh@
echo "machine=$(uname -m)"
echo "kernel=$(uname -r)"
model='s/^\(model name\|Hardware\|CPU part\)[[:space:]]*: *//p'
echo "cpu=$(sed -n "$model" /proc/cpuinfo | head -n 1)"
echo "cpus=$(grep -c '^processor' /proc/cpuinfo)"
echo "memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "page=$(getconf PAGESIZE 2>/dev/null || echo 4096)"
# Only the kernel's first network namespace has this key. Comparing our namespace with that of
# process 1 would not do: security modules hide it, also from root.
[ -e /proc/sys/net/core/netdev_max_backlog ] && echo "namespace=first" || echo "namespace=child"
echo "uid=$(id -u)"
read -r _ _ uids < /proc/self/uid_map && echo "uids=$uids"
place='\(/proc\|/proc/sys\(/[^ ]*\)*\)'
mount="s#^[^ ]* [^ ]* [^ ]* [^ ]* $place \(r[ow]\).* - [^ ]* [^ ]* \(r[ow]\).*#\1 \3\4#p"
echo "mounts=$(sed -n "$mount" /proc/self/mountinfo | tr '\n' ' ')"
PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin
echo "nginx=$(version)"
cpus=
allowed() { # of a process, as taskset lists them
    while read -r name value; do
        [ "$name" != Cpus_allowed_list: ] || echo "$value"
    done < "$1/status"
}
all=$(allowed /proc/1)
add() { # the processors of the workers of root's nginx in `process`
    [ -z "$runs_as$doubt" ] || return
    for worker in $(grep -l "^PPid:[[:space:]]*${process#/proc/}\$" /proc/[0-9]*/status); do
        read -r _ what _ < "${worker%/status}/cmdline"
        [ "$what" = worker ] || continue
        value=$(allowed "${worker%/status}")
        [ "$value" != "$all" ] || value=all
        case " $cpus " in *" $value "*) ;; *) cpus="$cpus $value" ;; esac
    done
}
masters add
echo "nginx_cpus=${cpus# }"
echo "congestion_control=$(cat /proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null)"
echo "clock=$(date +%s.%N)"

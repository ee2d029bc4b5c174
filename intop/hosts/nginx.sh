# A word and what it is about on each line, of all nginx in the network namespace.
@trust.sh@
@nginx_masters.sh@
limit() { sed -n "s/^Max open files  *\([^ ]*\) .*/$1 \1/p" "$2/limits"; }
describe() {
    if [ -n "$runs_as$doubt" ]; then
        echo "not_roots ${doubt:-runs without root, as user ${runs_as% *}}"
        return
    fi
    echo "master ${process#/proc/}"
    limit nofile "$process"
    for worker in $(grep -l "^PPid:[[:space:]]*${process#/proc/}\$" /proc/[0-9]*/status); do
        case $(tr '\0' ' ' < "${worker%/status}/cmdline") in
        'nginx: worker process is shutting down'*) ;;
        'nginx: worker process'*) limit worker "${worker%/status}" ;;
        esac
    done
    unit=$(sed -n 's#.*/\([^/]*\.service\)$#\1#p' "$process/cgroup" | head -n 1)
    if [ -n "$unit" ] && [ -d /run/systemd/system ]; then
        echo "unit $unit"
        systemctl show -p LimitNOFILESoft "$unit" | sed -n 's/^LimitNOFILESoft=/unit_nofile /p'
    fi
    said='s/^nginx version:/version &/p; s/^configure arguments:/build &/p'
    if [ "$process/ns/mnt" -ef /proc/self/ns/mnt ]; then
        "$program" -V 2>&1
    else
        nsenter -t "${process#/proc/}" -m -- "$program" -V 2>&1
    fi | sed -n "$said"
}
# Not more of those without root's rights: anybody can start thousands.
masters describe 20
echo "kernel $(uname -r)"
echo "cpus $(grep -c '^processor' /proc/cpuinfo)"
echo "page $(getconf PAGESIZE 2>/dev/null || echo 4096)"

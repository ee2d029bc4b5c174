# A word and what it is about on each line. Role, folder and programs come on stdin.
@trusted.sh@
PATH=$PATH:/sbin:/usr/sbin
read -r role
read -r folder
case $role in
load-balancer) by_root ;;
*) by_login ;;
esac
(trusted "$folder") 2>&1 | sed -n '1s/^/untrusted /p'
while [ ! -e "$folder" ]; do folder=$(dirname "$folder"); done
[ -d "$folder" ] && [ -w "$folder" ] && echo "can_store"
echo "free $(df -Pk "$folder" | sed -n '$s/.* \([0-9][0-9]*\)  *[0-9-]*%.*/\1/p')"
while read -r name; do command -v "$name" >/dev/null || echo "lacks $name"; done
# Programs that set sysctls while they run: tuners, and what keeps a host's configuration as it was
# declared. (systemd-sysctl only does so at boot.)
tuners='tuned|bpftune|atuned|puppet|chef-client|salt-minion|cf-execd'
cat /proc/[0-9]*/comm 2>/dev/null | grep -xE "$tuners" | sort -u | sed 's/^/tuner /'
grep -lsE '^[^#]*\<sysctl\>' /etc/crontab /etc/cron.*/* /var/spool/cron/* /var/spool/cron/*/* |
    sed 's/^/schedule /'
ls /etc/systemd/system/*sysctl*.timer 2>/dev/null | sed 's/^/schedule /'
read -r line 2>/dev/null < /sys/kernel/security/lockdown &&
    case $line in *'['*']'*) line=${line#*[} && echo "lockdown ${line%%]*}" ;; esac
read -r line 2>/dev/null < /sys/fs/selinux/enforce && echo "selinux $line"
read -r line 2>/dev/null < /proc/self/attr/current && echo "label $line"
exit 0

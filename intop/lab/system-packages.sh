#!/bin/sh
# Installs what is missing of what intop needs from the system. Without a word that is what its own
# environment needs; with `lab` also the programs of the embedded lab, with `guests` those of its
# virtual machines, with `machines` those of its Debian machines, with the name of a server (apache,
# haproxy, ...) that one, with `tests` what only the tests need, and all of these servers.
# Debian and Ubuntu start a server when its package is installed; we only want the programs, so
# for the time of the installation nothing is started, nor is what we bring at the next boot.
set -eu

PATH=$PATH:/usr/sbin:/sbin
packages= browser= units=
need() {
    command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}
need python3 python3
# A server in place of nginx: its name, its program, its package, and the package's service.
need_server() {
    case " $words " in *" $1 "* | *" tests "*) ;; *) return 0 ;; esac
    command -v "$2" >/dev/null 2>&1 || { packages="$packages $3" units="$units $4"; }
}
words=$*
need_server apache apache2 apache2-bin ""
need_server haproxy haproxy haproxy haproxy
need_server lighttpd lighttpd lighttpd lighttpd
need_server varnish varnishd varnish "varnish varnishncsa"
need_server caddy caddy caddy caddy
need_server h2o h2o h2o h2o
# LightGBM's wheel uses the system's OpenMP library.
ldconfig -p | grep -q 'libgomp\.so\.1 ' || packages="$packages libgomp1"
case " $* " in *" lab "*)
    need nginx nginx
    need luajit luajit
    need sshd openssh-server
    need ssh openssh-client
    need ip iproute2
    need sysctl procps
    need setsid util-linux
    ;;
esac
case " $* " in *" tests "*)
    need sudo sudo
    # systemd-sysctl is in the same package.
    need systemd-run systemd
    need tuned-adm tuned
    # Debian has the server's programs in a folder for each version, and none on the PATH.
    PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
    need postgres postgresql
    # Opens the report: Debian's Chromium without its windows and what they need.
    command -v chromium >/dev/null 2>&1 || command -v chromium-headless-shell >/dev/null 2>&1 ||
        browser=chromium-headless-shell
    ;;
esac
case " $* " in *" guests "*)
    # For a guest of the other architecture; one of this machine's own needs the other package.
    need depmod kmod
    case $(uname -m) in
    aarch64 | arm*) need qemu-system-x86_64 qemu-system-x86 ;;
    *) need qemu-system-aarch64 qemu-system-arm ;;
    esac
    ;;
esac
case " $* " in *" machines "*)
    need mmdebstrap mmdebstrap
    need mke2fs e2fsprogs
    need unshare util-linux
    # Of this machine's own architecture: a package's scripts run here when it is installed.
    case $(uname -m) in
    aarch64 | arm*) need qemu-system-aarch64 qemu-system-arm ;;
    *) need qemu-system-x86_64 qemu-system-x86 ;;
    esac
    ;;
esac
python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"
[ -n "$packages$browser" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "missing:$packages $browser. As root: apt-get install$packages $browser" >&2
    exit 2
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing:$packages $browser. Install them with this system's package manager" >&2
    exit 2
fi

policy=/usr/sbin/policy-rc.d
# PostgreSQL's package would make a cluster that is started at the next boot. Tests make their own.
clusters=/etc/postgresql-common/createcluster.d
remove="$clusters/intop.conf"
[ -e "$policy" ] || remove="$remove $policy"
# shellcheck disable=SC2086
trap 'rm -f $remove' EXIT
trap 'exit 130' INT TERM HUP
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi
case "$packages " in *" postgresql "*)
    mkdir -p "$clusters"
    echo 'create_main_cluster = false' > "$clusters/intop.conf"
    ;;
esac
echo "installing$packages $browser" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
[ -z "$packages" ] || apt-get install -y -qq --no-install-recommends $packages >/dev/null
[ -z "$browser" ] || apt-get install -y -qq --no-install-recommends "$browser" >/dev/null ||
    echo "no $browser (Ubuntu has none): the report's test in a browser will fail" >&2
# TuneD would choose a profile for the machine at its next start, and servers would take its ports.
case "$packages " in *" tuned "*) units="$units tuned" ;; esac
if command -v systemctl >/dev/null 2>&1; then
    for unit in $units; do systemctl --quiet disable "$unit.service"; done
fi

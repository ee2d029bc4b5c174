#!/bin/sh
# Installs what is missing of what intop needs from the system. Without a word that is what its own
# environment needs; with `lab` also the programs of the embedded lab, with `guests` those of its
# virtual machines, with `machines` those of its Debian machines, with `tests` what only the tests
# need.
# Debian and Ubuntu start a server when its package is installed; we only want the programs, so
# for the time of the installation nothing is started.
set -eu

PATH=$PATH:/usr/sbin:/sbin
packages= browser=
need() {
    command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}
need python3 python3
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
# TuneD would choose a profile for the machine at its next start. The tests only want the program.
case "$packages " in *" tuned "*) systemctl --quiet disable tuned.service ;; esac

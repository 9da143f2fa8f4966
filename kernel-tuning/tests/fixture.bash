# Fake roots: what /proc, /sys and /etc of two kinds of hosts look like, made anew for each test.

bats_require_minimum_version 1.5.0

TUNING=$(cd "$BATS_TEST_DIRNAME/.." && pwd)

# TUNE_SHELL runs the script with another shell than /bin/sh.
tune() {
    ${TUNE_SHELL:-} "$TUNING/tune" "$@"
}

put() { # PATH CONTENT
    mkdir -p "$ROOT/$(dirname "$1")"
    printf '%s\n' "$2" >"$ROOT/$1"
}

# A card with a device of its own: queues, address, interrupts.
put_card() { # NAME RX_QUEUES TX_QUEUES ADDRESS
    local device=$ROOT/sys/devices/pci0/$1-device net=sys/devices/pci0/$1-device/net/$1 queue
    mkdir -p "$ROOT/sys/class/net" "$device/msi_irqs"
    put "$net/operstate" up
    put "$net/address" "$4"
    for ((queue = 0; queue < $2; queue++)); do
        put "$net/queues/rx-$queue/rps_cpus" 0
        put "$net/queues/rx-$queue/rps_flow_cnt" 0
    done
    for ((queue = 0; queue < $3; queue++)); do
        put "$net/queues/tx-$queue/xps_cpus" 0
    done
    ln -s ../.. "$ROOT/$net/device"
    ln -s "../../devices/pci0/$1-device/net/$1" "$ROOT/sys/class/net/$1"
}

put_interrupt() { # CARD NUMBER NAME
    : >"$ROOT/sys/devices/pci0/$1-device/msi_irqs/$2"
    put "proc/irq/$2/smp_affinity_list" 0-3
    printf ' %s:  1  2  3  4  PCI-MSI 1-edge  %s\n' "$2" "$3" >>"$ROOT/proc/interrupts"
}

put_common() {
    put proc/sys/kernel/random/boot_id 11111111-2222-3333-4444-555555555555
    put proc/self/status $'Name:\tsh\nSeccomp:\t0'
    put proc/cmdline 'BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet'
    put proc/interrupts '   CPU0  CPU1  CPU2  CPU3'
    put proc/sys/net/core/netdev_max_backlog 1000
    put proc/sys/net/core/busy_read 0
    put proc/sys/net/core/busy_poll 0
    put proc/sys/net/core/rps_sock_flow_entries 0
    put proc/sys/net/ipv4/ip_local_port_range $'32768\t60999'
    put proc/sys/net/ipv4/tcp_timestamps 1
    put proc/sys/net/ipv4/tcp_slow_start_after_idle 1
    put proc/sys/net/ipv4/tcp_rmem $'4096\t131072\t6291456'
    put proc/sys/net/ipv4/tcp_wmem $'4096\t16384\t4194304'
    put proc/sys/vm/zone_reclaim_mode 0
    put proc/sys/kernel/numa_balancing 1
    put sys/kernel/mm/transparent_hugepage/defrag 'always defer defer+madvise [madvise] never'
    put sys/devices/system/cpu/online 0-3
    mkdir -p "$ROOT/sys/devices/system/node/node0"
    mkdir -p "$ROOT/sys/class/net/lo/queues/rx-0" "$ROOT/etc" "$ROOT/tmp"
}

# A Debian 12 virtual machine: four cores, a virtio card with one queue, systemd, no ethtool.
debian_root() {
    ROOT=$BATS_TEST_TMPDIR/debian
    put_common
    put etc/debian_version 12.5
    put proc/sys/kernel/osrelease 6.1.0-18-amd64
    put proc/sys/net/core/somaxconn 4096
    put proc/sys/net/ipv4/tcp_max_syn_backlog 1024
    put proc/sys/net/ipv4/tcp_tw_reuse 2
    put proc/sys/vm/swappiness 60
    put sys/kernel/mm/transparent_hugepage/enabled '[always] madvise never'
    put sys/devices/system/clocksource/clocksource0/available_clocksource 'tsc kvm-clock acpi_pm '
    put sys/devices/system/clocksource/clocksource0/current_clocksource kvm-clock
    put_card ens3 1 1 52:54:00:00:00:01
    put_interrupt ens3 24 virtio0-config
    put_interrupt ens3 25 virtio0-input.0
    put_interrupt ens3 26 virtio0-output.0
    mkdir -p "$ROOT/etc/sysctl.d" "$ROOT/etc/systemd/system" "$ROOT/usr/lib/tmpfiles.d" "$ROOT/usr/lib/udev"
    put usr/lib/systemd/system/switchboard-router.service $'[Service]\nExecStart=/usr/bin/switchboard-router\nLimitNOFILE=1024:524288'
}

# A RHEL 9 machine: io_uring off, four cores on two nodes, a card with four queues, ethtool, cpufreq.
rhel_root() {
    ROOT=$BATS_TEST_TMPDIR/rhel
    put_common
    put etc/redhat-release 'Red Hat Enterprise Linux release 9.4 (Plow)'
    put proc/sys/kernel/osrelease 5.14.0-427.13.1.el9_4.x86_64
    put proc/sys/kernel/io_uring_disabled 2
    put proc/sys/kernel/io_uring_group -1
    put proc/sys/net/core/somaxconn 128
    put proc/sys/net/ipv4/tcp_max_syn_backlog 2048
    put proc/sys/net/ipv4/tcp_tw_reuse 2
    put proc/sys/vm/swappiness 60
    put sys/kernel/mm/transparent_hugepage/enabled '[always] madvise never'
    put sys/devices/system/clocksource/clocksource0/available_clocksource 'tsc hpet acpi_pm '
    put sys/devices/system/clocksource/clocksource0/current_clocksource hpet
    put_card eno1 4 4 00:11:22:33:44:55
    local queue
    for queue in 0 1 2 3; do put_interrupt eno1 $((40 + queue)) "ice-eno1-TxRx-$queue"; done
    put_interrupt eno1 50 ice-0000:01:00.0:misc
    mkdir -p "$ROOT/sys/devices/system/node/node1"
    put sys/devices/pci0/eno1-device/numa_node 0
    local core
    for core in 0 1 2 3; do
        put "sys/devices/system/cpu/cpufreq/policy$core/scaling_governor" powersave
        put "sys/devices/system/cpu/cpufreq/policy$core/scaling_available_governors" 'performance powersave'
        mkdir -p "$ROOT/sys/devices/system/cpu/cpu$core/node$((core / 2))"
    done
    put sys/devices/system/cpu/cpu0/cpuidle/state0/name POLL
    put sys/devices/system/cpu/cpu0/cpuidle/state0/latency 0
    put sys/devices/system/cpu/cpu0/cpuidle/state0/disable 0
    put sys/devices/system/cpu/cpu0/cpuidle/state1/name C6
    put sys/devices/system/cpu/cpu0/cpuidle/state1/latency 133
    put sys/devices/system/cpu/cpu0/cpuidle/state1/disable 0
    put sys/devices/system/cpu/intel_pstate/no_turbo 0
    mkdir -p "$ROOT/etc/sysctl.d" "$ROOT/etc/systemd/system" "$ROOT/etc/tmpfiles.d" "$ROOT/usr/lib/udev"
    put etc/systemd/system/switchboard-router.service $'[Service]\nExecStart=/usr/bin/switchboard-router\nLimitNOFILE=1024\nLimitMEMLOCK=64K'
    put_ethtool
}

# An ethtool that keeps its state in files, and prints as the real one does.
put_ethtool() {
    put card/ring 512
    put card/adaptive-rx on
    put card/rx-usecs 50
    put card/lro on
    mkdir -p "$ROOT/usr/sbin"
    cat >"$ROOT/usr/sbin/ethtool" <<'END'
#!/bin/sh
card=${0%/usr/sbin/ethtool}/card
case $1 in
-g) printf 'Ring parameters for %s:\nPre-set maximums:\nRX:\t\t2048\nTX:\t\t2048\nCurrent hardware settings:\nRX:\t\t%s\nTX:\t\t512\n' "$2" "$(cat "$card/ring")" ;;
-c) printf 'Coalesce parameters for %s:\nAdaptive RX: %s  TX: off\nrx-usecs:\t%s\nrx-frames:\tn/a\n' "$2" "$(cat "$card/adaptive-rx")" "$(cat "$card/rx-usecs")" ;;
-k) printf 'Features for %s:\ntcp-segmentation-offload: on\ngeneric-segmentation-offload: on\ngeneric-receive-offload: off [fixed]\nlarge-receive-offload: %s\n' "$2" "$(cat "$card/lro")" ;;
-G) [ ! -e "$card/kills" ] || kill -"$(cat "$card/kills")" $PPID
    [ ! -e "$card/refuses" ] && printf '%s\n' "$4" >"$card/ring" ;;
-C | -K) printf '%s\n' "$4" >"$card/$3" ;;
esac
END
    chmod 755 "$ROOT/usr/sbin/ethtool"
}

# Every folder, link, file, mode and byte of the fake root, in one text.
fingerprint() {
    (cd "$ROOT" && find . -printf '%p %y %m %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

# One member of the JSON on standard input: `json 'settings[0].verdict'` in Python's own spelling.
json() { # EXPRESSION of `it`
    python3 -c 'import json,sys
it = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# The verdicts of one setting, in order.
verdicts() { # SETTING
    json "' '.join(s['verdict'] for s in it['settings'] if s['setting'] == '$1')"
}

#!/usr/bin/env bats
# What `check` sees on each kind of host.

load fixture

@test "check changes nothing on a Debian-like root" {
    debian_root
    before=$(fingerprint)
    run -1 tune check --profile edge-latency --root "$ROOT"
    run -1 tune check --profile edge-latency --root "$ROOT" --persist --json
    [ "$(fingerprint)" = "$before" ]
}

@test "check is the command if none is given, and edge-latency the profile" {
    debian_root
    run -1 tune --root "$ROOT"
    [[ ${lines[0]} == 'profile edge-latency,'* ]]
}

@test "check tells setting, present, wanted, why, effect and source" {
    debian_root
    run -1 tune check --root "$ROOT" --only vm.swappiness
    [[ $output == *'differs   vm.swappiness'* ]]
    [[ $output == *'present 60, wanted at most 10'* ]]
    [[ $output == *'why     A page of the router'* ]]
    [[ $output == *'effect  The kernel prefers'* ]]
    [[ $output == *'source  Documentation/admin-guide/sysctl/vm.rst'* ]]
}

@test "a Debian-like root gets the right verdicts" {
    debian_root
    tune check --profile edge-latency --root "$ROOT" --json >"$BATS_TEST_TMPDIR/json" || true
    verdict() { verdicts "$1" <"$BATS_TEST_TMPDIR/json"; }
    [ "$(verdict kernel.io_uring_disabled)" = skipped ] # Linux 6.1 has no such switch
    [ "$(verdict ring.kernel_release)" = as_wanted ]
    [ "$(verdict ring.seccomp)" = as_wanted ]
    [ "$(verdict limits.nofile)" = as_wanted ] # the hard limit of 1024:524288
    [ "$(verdict limits.memlock)" = differs ]
    [ "$(verdict net.core.somaxconn)" = as_wanted ]
    [ "$(verdict net.ipv4.tcp_max_syn_backlog)" = differs ]
    [ "$(verdict net.ipv4.ip_local_port_range)" = differs ]
    [ "$(verdict net.ipv4.tcp_tw_reuse)" = as_wanted ]
    [ "$(verdict nic.irq_affinity)" = 'differs differs' ] # both queues, not the config interrupt
    [ "$(verdict nic.rps_cpus)" = differs ]               # one queue, three workers
    [ "$(verdict net.core.rps_sock_flow_entries)" = differs ]
    [ "$(verdict nic.rps_flow_cnt)" = differs ]
    [ "$(verdict nic.xps_cpus)" = skipped ] # one transmit queue
    [ "$(verdict nic.ring_rx)" = skipped ]  # no ethtool
    [ "$(verdict cpu.governor)" = skipped ]
    [ "$(verdict boot.isolcpus)" = advice ]
    [ "$(verdict memory.transparent_hugepage)" = differs ]
    [ "$(verdict memory.transparent_hugepage_defrag)" = as_wanted ]
    [ "$(verdict kernel.numa_balancing)" = skipped ] # one node
    [ "$(verdict clock.source)" = as_wanted ]        # kvm-clock is as good
}

@test "a RHEL-like root gets the right verdicts" {
    rhel_root
    tune check --profile edge-latency --root "$ROOT" --json >"$BATS_TEST_TMPDIR/json" || true
    verdict() { verdicts "$1" <"$BATS_TEST_TMPDIR/json"; }
    [ "$(verdict kernel.io_uring_disabled)" = differs ]
    [ "$(verdict ring.kernel_release)" = advice ] # 5.14, with features of later ones
    [ "$(verdict limits.nofile)" = differs ]
    [ "$(verdict limits.memlock)" = differs ]
    [ "$(verdict net.core.somaxconn)" = differs ]
    [ "$(verdict nic.irq_affinity)" = 'differs differs differs differs' ]
    [ "$(verdict nic.rps_cpus)" = 'as_wanted as_wanted as_wanted as_wanted' ] # a queue per worker
    [ "$(verdict net.core.rps_sock_flow_entries)" = skipped ]
    [ "$(verdict nic.xps_cpus)" = 'differs differs differs differs' ]
    [ "$(verdict nic.ring_rx)" = differs ]
    [ "$(verdict nic.adaptive_rx)" = differs ]
    [ "$(verdict nic.rx_usecs)" = differs ]
    [ "$(verdict nic.tso)" = as_wanted ]
    [ "$(verdict nic.gro)" = skipped ] # the driver has it fixed
    [ "$(verdict nic.lro)" = differs ]
    [ "$(verdict cpu.governor)" = 'differs differs differs differs' ]
    [ "$(verdict cpu.idle_states)" = advice ]
    [ "$(verdict cpu.turbo)" = as_wanted ]
    [ "$(verdict kernel.numa_balancing)" = differs ]
    [ "$(verdict memory.numa_placement)" = advice ] # core 2 is on node 1, the card on node 0
    [ "$(verdict clock.source)" = differs ]         # hpet, where tsc is offered
}

@test "a host that is as wanted ends with 0" {
    rhel_root
    run -0 tune apply --profile edge-throughput --persist --root "$ROOT"
    run -0 tune check --profile edge-throughput --persist --root "$ROOT"
    [[ $output == *' 0 differ, '* ]]
}

@test "a seccomp filter is told, with how to see more" {
    debian_root
    put proc/self/status $'Name:\tsh\nSeccomp:\t2'
    run -0 tune check --profile dev --root "$ROOT" --only ring.seccomp
    [[ $output == *'advice    ring.seccomp'*'allow io_uring_setup'* ]]
}

@test "being in a container is said" {
    debian_root
    put run/.containerenv ''
    run -1 tune check --profile edge-latency --root "$ROOT"
    [[ $output == *'this is a container'* ]]
}

@test "a value that no kernel prints is a failure, not a crash" {
    debian_root
    put proc/sys/vm/swappiness '$(touch pwned) `id` 6"0\'
    run -1 tune check --root "$ROOT" --only vm.swappiness --json
    [ "$(verdicts vm.swappiness <<<"$output")" = failed ]
    [ "$(json "it['settings'][0]['present']" <<<"$output")" = '$(touch pwned) `id` 6"0\' ]
    [ ! -e pwned ]
}

@test "numbers beyond 64 bits are compared right" {
    debian_root
    put proc/sys/net/core/somaxconn 99999999999999999999999
    run -0 tune check --root "$ROOT" --only net.core.somaxconn
}

@test "a range that is already wider is left alone" {
    debian_root
    put proc/sys/net/ipv4/ip_local_port_range $'1024\t65535'
    run -0 tune check --root "$ROOT" --only net.ipv4.ip_local_port_range
}

@test "the clock that the kernel does not offer is never chosen" {
    debian_root
    put sys/devices/system/clocksource/clocksource0/available_clocksource 'hpet acpi_pm '
    put sys/devices/system/clocksource/clocksource0/current_clocksource hpet
    run -0 tune check --root "$ROOT" --only clock.source --json
    [ "$(verdicts clock.source <<<"$output")" = advice ]
}

@test "an interface without a device, or that is down, is not looked at" {
    debian_root
    printf 'down\n' >"$ROOT/sys/class/net/ens3/operstate"
    run -0 tune check --root "$ROOT" --only nic.rps_cpus
    [[ $output == *'no network interface here is up and has a device'* ]]
}

@test "--interface narrows to the named cards" {
    rhel_root
    put_card eno2 1 1 00:11:22:33:44:66
    run tune check --root "$ROOT" --only nic.lro --interface eno1 --json
    [ "$(json "[s['instance'] for s in it['settings']]" <<<"$output")" = "['eno1']" ]
    run -0 tune check --root "$ROOT" --only nic.lro --interface eno9
    [[ $output == *'no interface of --interface is up'* ]]
}

@test "irqbalance is told, since it would undo the affinity" {
    debian_root
    run -0 tune check --root "$ROOT" --only nic.irqbalance
    [[ $output == *'as wanted nic.irqbalance'* ]]
    mkdir -p "$ROOT/run/irqbalance"
    run -0 tune check --root "$ROOT" --only nic.irqbalance
    [[ $output == *'advice    nic.irqbalance'* ]]
}

@test "a file that sysctl reads later is told, once" {
    debian_root
    put etc/sysctl.conf 'vm.swappiness=60'
    ln -s ../sysctl.conf "$ROOT/etc/sysctl.d/99-sysctl.conf"
    put etc/sysctl.d/10-early.conf 'vm.swappiness = 60'
    run -1 tune check --root "$ROOT" --persist --only vm.swappiness --json
    [ "$(json "[s['present'] for s in it['settings'] if s['verdict'] == 'advice']" <<<"$output")" = "['vm.swappiness in /etc/sysctl.conf']" ]
}

@test "whole values are read from the real /proc/sys" {
    # dash's own `read` would take the first digit only.
    [ -r /proc/sys/vm/swappiness ] || skip 'no /proc/sys here'
    run tune check --only vm.swappiness --json
    [ "$(json "it['settings'][0]['present']" <<<"$output")" = "$(cat /proc/sys/vm/swappiness)" ]
}

@test "check on this host ends with 0 or 1 and gives sound JSON" {
    run tune check --json
    [ "$status" -eq 0 ] || [ "$status" -eq 1 ]
    [ "$(json "it['command']" <<<"$output")" = check ]
}

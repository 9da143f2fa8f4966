#!/usr/bin/env bats
# What `apply` and `revert` do to a fake root, and what they leave alone.

load fixture

@test "apply and revert leave a Debian-like root byte-identical" {
    debian_root
    before=$(fingerprint)
    run tune apply --profile edge-latency --root "$ROOT"
    [ "$(fingerprint)" != "$before" ]
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "apply and revert leave a RHEL-like root byte-identical, with persisted files and every profile" {
    rhel_root
    before=$(fingerprint)
    for profile in edge-latency edge-throughput dev; do
        run -0 tune apply --profile $profile --persist --root "$ROOT"
        [ "$(fingerprint)" != "$before" ]
        run -0 tune revert --root "$ROOT"
        diff <(fingerprint) <(printf '%s\n' "$before")
    done
}

@test "files and folders that were there before --persist come back with content and mode" {
    debian_root
    put etc/sysctl.d/90-switchboard.conf 'vm.swappiness = 33'
    chmod 600 "$ROOT/etc/sysctl.d/90-switchboard.conf"
    put etc/systemd/system/switchboard-router.service.d/10-own.conf '[Service]'
    before=$(fingerprint)
    run -0 tune apply --profile edge-latency --persist --root "$ROOT"
    grep -q '^vm.swappiness = 10$' "$ROOT/etc/sysctl.d/90-switchboard.conf"
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "a second apply changes nothing, not even what is saved" {
    rhel_root
    run -0 tune apply --profile edge-latency --persist --root "$ROOT"
    after=$(fingerprint)
    run -0 tune apply --profile edge-latency --persist --root "$ROOT"
    [[ $output == *'nothing to change'* ]]
    diff <(fingerprint) <(printf '%s\n' "$after")
}

@test "an apply of another profile keeps the first originals" {
    debian_root
    before=$(fingerprint)
    run tune apply --profile edge-latency --root "$ROOT"
    run tune apply --profile edge-throughput --root "$ROOT"
    [ "$(cat "$ROOT/proc/sys/net/ipv4/tcp_max_syn_backlog")" = 8192 ]
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "a value that drifted since is set again and still reverts to the first original" {
    debian_root
    before=$(fingerprint)
    run -0 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    put proc/sys/vm/swappiness 77
    run -0 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    [ "$(cat "$ROOT/proc/sys/vm/swappiness")" = 10 ]
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "a dry run changes nothing, and says what would change" {
    rhel_root
    before=$(fingerprint)
    run tune apply --profile edge-latency --persist --dry-run --root "$ROOT"
    [[ $output == *'would change net.core.somaxconn: 128 -> 4096'* ]]
    [ "$(fingerprint)" = "$before" ]
    run -0 tune apply --profile edge-latency --root "$ROOT" --only network
    after=$(fingerprint)
    run -0 tune revert --dry-run --root "$ROOT"
    [[ $output == *'would restore net.core.somaxconn: 4096 -> 128'* ]]
    [ "$(fingerprint)" = "$after" ]
}

@test "each change is shown before it is made, with the old value" {
    debian_root
    run -0 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    shown=${output%%changing:*}
    [[ $shown == *'present 60, wanted at most 10'* ]]
    [[ $output == *'changed      vm.swappiness: 60 -> 10'* ]]
}

@test "nothing is persisted without --persist" {
    rhel_root
    run tune apply --profile edge-latency --root "$ROOT"
    [ -z "$(find "$ROOT/etc" -name '90-*')" ]
    [[ $output == *'only --persist writes'* ]]
    [ "$status" -eq 1 ] # the limits still differ
}

@test "the persisted files hold what was applied" {
    rhel_root
    run -0 tune apply --profile edge-latency --persist --root "$ROOT"
    grep -qx 'net.core.somaxconn = 4096' "$ROOT/etc/sysctl.d/90-switchboard.conf"
    grep -qx 'w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise' "$ROOT/etc/tmpfiles.d/90-switchboard.conf"
    grep -q 'ATTR{address}=="00:11:22:33:44:55", ATTR{queues/tx-1/xps_cpus}="2"$' "$ROOT/etc/udev/rules.d/90-switchboard.rules"
    grep -q 'RUN+="/usr/sbin/ethtool -C $name rx-usecs 10"$' "$ROOT/etc/udev/rules.d/90-switchboard.rules"
    [ "$(tail -n 3 "$ROOT/etc/systemd/system/switchboard-router.service.d/90-tuning.conf")" = \
        $'[Service]\nLimitNOFILE=524288\nLimitMEMLOCK=67108864' ]
    run -1 grep -rqE 'isolcpus|nohz_full|rcu_nocbs' "$ROOT/etc"
}

@test "boot parameters are printed for the worker cores and never written" {
    rhel_root
    run tune apply --profile edge-latency --persist --root "$ROOT"
    [[ $output == *'isolcpus=managed_irq,domain,0,1,2'* ]]
    [[ $output == *'nohz_full=0,1,2'* ]]
    [ "$(cat "$ROOT/proc/cmdline")" = 'BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet' ]
}

@test "boot parameters that are there are as wanted" {
    rhel_root
    put proc/cmdline 'quiet isolcpus=managed_irq,domain,0-2 nohz_full=0-2 rcu_nocbs=0,1,2'
    run -0 tune check --root "$ROOT" --only boot --json
    [ "$(json "it['summary']['as_wanted']" <<<"$output")" = 3 ]
}

@test "a value that cannot be written stops the apply before anything is changed" {
    [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || skip 'needs root and setpriv to become somebody else'
    debian_root
    chown -R 65534 "$ROOT"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "${BATS_TEST_TMPDIR%/*}"
    chown 0 "$ROOT/proc/sys/vm/swappiness"
    before=$(fingerprint)
    run -1 setpriv --reuid=65534 --clear-groups "$TUNING/tune" apply --profile edge-latency --root "$ROOT"
    [[ $output == *'nothing is changed: '*'/proc/sys/vm/swappiness cannot be written'*'--except vm.swappiness leaves it out'* ]]
    diff <(fingerprint) <(printf '%s\n' "$before")
    run setpriv --reuid=65534 --clear-groups "$TUNING/tune" apply --profile edge-latency --root "$ROOT" --except vm.swappiness
    [ "$(cat "$ROOT/proc/sys/net/ipv4/tcp_max_syn_backlog")" = 4096 ]
}

@test "what the kernel refuses takes back what this run had changed" {
    rhel_root
    put card/refuses ''
    before=$(fingerprint)
    run -1 tune apply --profile edge-latency --root "$ROOT"
    [[ $output == *'rolled back  net.core.somaxconn: 128 -> 4096'* ]]
    [[ $output == *"nothing is changed: nic.ring_rx [eno1] does not take '1024'; --except nic.ring_rx leaves it out"* ]]
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "a refused change after an earlier apply takes back only this run" {
    rhel_root
    before=$(fingerprint)
    run -0 tune apply --profile edge-latency --only network --root "$ROOT"
    put proc/sys/net/core/somaxconn 200
    put card/refuses ''
    halfway=$(fingerprint)
    run -1 tune apply --profile edge-latency --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$halfway")
    rm "$ROOT/card/refuses"
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "an apply that is killed in the middle can be reverted" {
    rhel_root
    before=$(fingerprint)
    put card/kills KILL
    run -137 tune apply --profile edge-latency --persist --root "$ROOT"
    [ "$(cat "$ROOT/proc/sys/net/core/somaxconn")" = 4096 ]
    [ "$(cat "$ROOT/proc/sys/vm/swappiness")" = 60 ]
    rm "$ROOT/card/kills"
    run -0 tune revert --root "$ROOT"
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "an apply that is told to stop takes back what it had changed" {
    rhel_root
    put card/kills TERM
    before=$(fingerprint)
    run -1 tune apply --profile edge-latency --persist --root "$ROOT"
    [[ $output == *'rolled back  net.core.somaxconn: 128 -> 4096'* ]]
    [[ $output == *'nothing is changed: interrupted'* ]]
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "a full disk under the state folder stops the apply, and nothing is changed" {
    [ "$(id -u)" -eq 0 ] || skip 'needs root'
    rhel_root
    mkdir -p "$ROOT/state"
    mount -t tmpfs -o size=32k tuning-test "$ROOT/state" 2>/dev/null || skip 'may not mount'
    before=$(fingerprint)
    run tune apply --profile edge-latency --state-dir /state --root "$ROOT"
    after=$(fingerprint)
    umount "$ROOT/state"
    [ "$status" -eq 1 ]
    [[ $output == *'nothing is changed: what is there cannot be saved'* ]]
    diff <(printf '%s\n' "$after") <(printf '%s\n' "$before")
}

@test "a file that would be written through a symbolic link is left alone" {
    debian_root
    ln -s /etc/passwd "$ROOT/etc/sysctl.d/90-switchboard.conf"
    run -1 tune check --profile edge-latency --persist --root "$ROOT" --only network
    [[ $output == *'failed    persist.sysctl'*'it is not followed'* ]]
}

@test "missing ethtool is skipped with a word" {
    rhel_root
    rm "$ROOT/usr/sbin/ethtool"
    run tune apply --profile edge-latency --root "$ROOT"
    [[ $output == *'skipped   nic.ring_rx [eno1]'*'ethtool is not installed'* ]]
    [ "$(cat "$ROOT/card/ring")" = 512 ]
}

@test "a receive ring is not asked to be larger than the card has" {
    rhel_root
    run -0 tune apply --profile edge-throughput --only nic.ring_rx --root "$ROOT"
    [ "$(cat "$ROOT/card/ring")" = 2048 ]
}

@test "interrupts and queues follow the core map" {
    rhel_root
    put map.json '{"workers":[{"worker":0,"core":2},{"worker":1,"core":3}],"housekeeping":0,"pinning":"pinned"}'
    run -0 tune apply --profile edge-latency --only nic --core-map "$ROOT/map.json" --root "$ROOT"
    [ "$(cat "$ROOT"/proc/irq/4[0-3]/smp_affinity_list | tr '\n' ' ')" = '2 3 2 3 ' ]
    [ "$(cat "$ROOT/proc/irq/50/smp_affinity_list")" = 0-3 ]
    [ "$(cat "$ROOT"/sys/class/net/eno1/queues/tx-*/xps_cpus | tr '\n' ' ')" = '4 8 4 8 ' ]
}

@test "one queue is shared by all workers, also beyond 32 cores" {
    debian_root
    put map.json '{"workers":[{"worker":0,"core":0},{"worker":1,"core":33}],"housekeeping":1,"pinning":"pinned"}'
    run -0 tune apply --profile edge-latency --only nic --core-map "$ROOT/map.json" --root "$ROOT"
    [ "$(cat "$ROOT/sys/class/net/ens3/queues/rx-0/rps_cpus")" = 2,00000001 ]
    [ "$(cat "$ROOT/sys/class/net/ens3/queues/rx-0/rps_flow_cnt")" = 32768 ]
}

@test "a router that is not pinned owns no core" {
    rhel_root
    put map.json '{"workers":[{"worker":0,"core":null}],"housekeeping":null,"pinning":"off_by_setting"}'
    run tune check --only nic.irq_affinity,boot --core-map "$ROOT/map.json" --root "$ROOT" --json
    [ "$(json "it['summary']['skipped']" <<<"$output")" = 4 ]
}

@test "revert with nothing saved says so and ends with 0" {
    debian_root
    before=$(fingerprint)
    run -0 tune revert --root "$ROOT"
    [[ $output == *'nothing to revert'* ]]
    diff <(fingerprint) <(printf '%s\n' "$before")
}

@test "revert refuses a record that this tool did not make, and restores the others" {
    debian_root
    run -0 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    mkdir -p "$ROOT/var/lib/switchboard-tuning/saved/000002"
    for part in 'kind sysfs' 'target /etc/passwd' 'setting x' 'instance x' 'before root::0'; do
        printf '%s\n' "${part#* }" >"$ROOT/var/lib/switchboard-tuning/saved/000002/${part%% *}"
    done
    run -1 tune revert --root "$ROOT"
    [ ! -e "$ROOT/etc/passwd" ]
    [ "$(cat "$ROOT/proc/sys/vm/swappiness")" = 60 ]
    [[ $output == *'not a record of this tool'* ]]
}

@test "interrupt numbers of an earlier boot are not written to" {
    debian_root
    run -0 tune apply --profile edge-latency --only nic.irq_affinity --root "$ROOT"
    put proc/sys/kernel/random/boot_id 99999999-2222-3333-4444-555555555555
    put proc/irq/25/smp_affinity_list 3
    run -0 tune revert --root "$ROOT"
    [[ $output == *'skipped'*'the restart since has undone it'* ]]
    [ "$(cat "$ROOT/proc/irq/25/smp_affinity_list")" = 3 ]
}

@test "a card that is gone is skipped by revert" {
    rhel_root
    run -0 tune apply --profile edge-latency --only nic.ring_rx --root "$ROOT"
    rm "$ROOT/sys/class/net/eno1"
    run -0 tune revert --root "$ROOT"
    [[ $output == *'no longer there'* ]]
    [ ! -e "$ROOT/var" ]
}

@test "a lock that a killed run left is taken over, one that is held is not" {
    debian_root
    mkdir -p "$ROOT/var/lib/switchboard-tuning/lock"
    printf '%s\n' $$ >"$ROOT/var/lib/switchboard-tuning/lock/pid"
    run -1 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    [[ $output == *"is held by process $$"* ]]
    [ "$(cat "$ROOT/proc/sys/vm/swappiness")" = 60 ]
    (exit 0) & gone=$!
    wait $gone
    printf '%s\n' $gone >"$ROOT/var/lib/switchboard-tuning/lock/pid"
    run -0 tune apply --profile edge-latency --only vm.swappiness --root "$ROOT"
    [ "$(cat "$ROOT/proc/sys/vm/swappiness")" = 10 ]
}

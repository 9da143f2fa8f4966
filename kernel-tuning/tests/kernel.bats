#!/usr/bin/env bats
# Against the running kernel: in a network namespace, and where /proc/sys is read-only, as in a container.

load fixture

setup() {
    [ "$(id -u)" -eq 0 ] || skip 'needs root'
    STATE=$BATS_TEST_TMPDIR/state
}

teardown() {
    if [ -n "${NAMESPACE:-}" ]; then
        ip netns del "$NAMESPACE"
    fi
}

new_namespace() {
    command -v ip >/dev/null || skip 'needs iproute2'
    NAMESPACE=
    ip netns add "tuning-test-$$" 2>/dev/null || skip 'may not make a network namespace'
    NAMESPACE=tuning-test-$$
}

inside() {
    ip netns exec "$NAMESPACE" "$@"
}

# Every readable network setting of the namespace.
network_settings() {
    inside sh -c 'cd /proc/sys/net && find . -type f -perm -0200 | sort | while read -r file; do echo "$file $(cat "$file" 2>/dev/null)"; done'
}

@test "net.* is applied for real in a network namespace, and reverted" {
    new_namespace
    inside sh -c 'echo 128 >/proc/sys/net/core/somaxconn && echo 1 >/proc/sys/net/ipv4/tcp_slow_start_after_idle'
    before=$(network_settings)
    host_before=$(cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_slow_start_after_idle)

    run -0 inside "$TUNING/tune" apply --profile edge-throughput --only network --state-dir "$STATE"
    [ "$(inside cat /proc/sys/net/core/somaxconn)" = 4096 ]
    [ "$(inside cat /proc/sys/net/ipv4/ip_local_port_range)" = $'32768\t65535' ]
    [ "$(inside cat /proc/sys/net/ipv4/tcp_tw_reuse)" = 1 ]
    [ "$(inside cat /proc/sys/net/ipv4/tcp_slow_start_after_idle)" = 0 ]
    [ "$(inside cat /proc/sys/net/ipv4/tcp_wmem | cut -f 3)" -ge 16777216 ]
    [ "$(cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_slow_start_after_idle)" = "$host_before" ]
    run -0 inside "$TUNING/tune" check --profile edge-throughput --only network
    run -0 inside "$TUNING/tune" apply --profile edge-throughput --only network --state-dir "$STATE"
    [[ $output == *'nothing to change'* ]]

    run -0 inside "$TUNING/tune" revert --state-dir "$STATE"
    diff <(network_settings) <(printf '%s\n' "$before")
    [ ! -e "$STATE" ]
}

@test "a value that the kernel refuses takes back the ones before it" {
    new_namespace
    cp -r "$TUNING" "$BATS_TEST_TMPDIR/copy"
    # The kernel's own upper limit of tcp_tw_reuse is 2; it answers EINVAL.
    sed -i 's/^net.ipv4.tcp_tw_reuse = .*/net.ipv4.tcp_tw_reuse = 9/' "$BATS_TEST_TMPDIR/copy/profiles/edge-throughput"
    before=$(network_settings)
    run -1 inside "$BATS_TEST_TMPDIR/copy/tune" apply --profile edge-throughput --only network --state-dir "$STATE"
    [[ $output == *'rolled back  net.ipv4.ip_local_port_range'* ]]
    [[ $output == *"net.ipv4.tcp_tw_reuse does not take '9'"* ]]
    diff <(network_settings) <(printf '%s\n' "$before")
    [ ! -e "$STATE" ]
}

@test "a read-only /proc/sys, as in a container, is named and nothing is changed" {
    command -v unshare >/dev/null || skip 'needs unshare'
    unshare --mount sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys' 2>/dev/null ||
        skip 'may not mount'
    new_namespace
    inside sh -c 'echo 128 >/proc/sys/net/core/somaxconn'
    run -1 inside unshare --mount sh -c 'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys &&
        exec "$0" apply --profile edge-latency --only network --state-dir "$1"' "$TUNING/tune" "$STATE"
    [[ $output == *'cannot be written (read-only, as in a container, or not allowed)'* ]]
    [[ $output == *'nothing is changed'* ]]
    [ "$(inside cat /proc/sys/net/core/somaxconn)" = 128 ]
    [ ! -e "$STATE" ]
}

@test "a real seccomp filter is told" {
    command -v python3 >/dev/null || skip 'needs python3'
    # One BPF instruction that allows every call, as a container's filter does with most.
    run -0 python3 - "$TUNING/tune" <<'END'
import ctypes, os, struct, sys

libc = ctypes.CDLL(None)
instruction = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(instruction)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("seccomp is refused here")
os.execv(sys.argv[1], [sys.argv[1], "check", "--only", "ring.seccomp"])
END
    [[ $output == *'advice    ring.seccomp'*'present a filter'* ]]
}

@test "without root, apply and revert say so and change nothing" {
    command -v setpriv >/dev/null || skip 'needs setpriv'
    cp -r "$TUNING" "$BATS_TEST_TMPDIR/copy"
    chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "${BATS_TEST_TMPDIR%/*}"
    sed -i 's/^net.core.somaxconn .*/net.core.somaxconn >= 123456789/' "$BATS_TEST_TMPDIR/copy/profiles/dev"
    run -1 setpriv --reuid=65534 --clear-groups "$BATS_TEST_TMPDIR/copy/tune" apply --profile dev --only network
    [[ $output == *'apply needs root'* ]]
    mkdir -p "$STATE/saved/000001"
    run -1 setpriv --reuid=65534 --clear-groups "$BATS_TEST_TMPDIR/copy/tune" revert --state-dir "$STATE"
    [[ $output == *'revert needs root'* ]]
    [ -d "$STATE/saved/000001" ]
}

@test "a state folder that somebody else may write to is not trusted" {
    mkdir -p "$STATE/saved/000001"
    printf 'sysctl\n' >"$STATE/saved/000001/kind"
    printf '/proc/sys/net/core/somaxconn\n' >"$STATE/saved/000001/target"
    printf '1\n' >"$STATE/saved/000001/before"
    chown -R 65534 "$STATE/saved"
    before=$(cat /proc/sys/net/core/somaxconn)
    run -1 tune revert --state-dir "$STATE"
    [[ $output == *'belongs to another user'* ]]
    [ "$(cat /proc/sys/net/core/somaxconn)" = "$before" ]
}

# io_uring: whether this kernel and this container let the router make its rings.

ring_settings() {
    setting kernel.io_uring_disabled \
        --why 'The router does all its network I/O through io_uring; with 2 no process may create a ring, with 1 only privileged ones and the group kernel.io_uring_group. RHEL 9 ships it as 2.' \
        --effect 'Any process may create rings. To keep it narrower, set 1, put the router user into kernel.io_uring_group, and leave this out with --except kernel.io_uring_disabled.' \
        --source 'Documentation/admin-guide/sysctl/kernel.rst (io_uring_disabled, io_uring_group)' &&
        ring_switch
    setting ring.kernel_release \
        --why 'The cheapest ring flags, SINGLE_ISSUER with DEFER_TASKRUN, came with Linux 6.1; COOP_TASKRUN with 5.19. The router falls back to fewer flags.' \
        --effect 'Fewer inter-processor interrupts and wake-ups per completion. Vendor kernels carry later features under older numbers: the router logs the ring mode that it got.' \
        --source 'io_uring_setup(2)' &&
        ring_release
    setting ring.seccomp \
        --why 'Default seccomp profiles of containers forbid the io_uring calls (Docker since 25.0); the router then cannot start its workers.' \
        --effect 'Which calls a filter forbids cannot be read from outside. Start the router in the same container: it ends with what the kernel said to its ring (Operation not permitted). Then allow io_uring_setup, io_uring_enter and io_uring_register in its seccomp profile, rather than running it unconfined.' \
        --source 'Documentation/userspace-api/seccomp_filter.rst; Docker: Seccomp security profiles; proc_pid_status(5)' &&
        ring_seccomp
}

ring_switch() {
    if [ -e "$root/proc/sys/kernel/io_uring_disabled" ]; then
        examine sysctl /proc/sys/kernel/io_uring_disabled
    else
        skip 'this kernel has no such switch (it came with Linux 6.6): where io_uring is built in, it is allowed'
    fi
}

ring_release() {
    if ! read_value /proc/sys/kernel/osrelease; then
        skip 'the kernel release cannot be read'
        return
    fi
    ring_major=${value%%.*}
    ring_minor=${value#*.}
    ring_minor=${ring_minor%%[!0-9]*}
    if ! is_number "$ring_major" || ! is_number "$ring_minor"; then
        skip "the kernel release '$value' is not understood"
    elif number_at_least $((ring_major * 1000 + ring_minor)) 6001; then
        finding as_wanted '' '' '' "$value" "at least $wanted" '' ''
    else
        advise "$value" "at least $wanted" 'a newer kernel serves a request with less CPU'
    fi
}

ring_seccomp() {
    ring_seccomp_mode=$(awk '$1 == "Seccomp:" { print $2; exit }' "$root/proc/self/status" 2>/dev/null)
    case $ring_seccomp_mode in
    0) finding as_wanted '' '' '' 'no filter' "$wanted" '' '' ;;
    1 | 2) advise 'a filter' "$wanted" 'this shell runs under a seccomp filter; if the router does too, see that it allows io_uring' ;;
    *) skip 'the kernel does not tell whether a seccomp filter is on' ;;
    esac
}

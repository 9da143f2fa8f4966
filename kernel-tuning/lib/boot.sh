# Boot parameters. They are printed and never written: a wrong one can keep a host from starting.

boot_settings() {
    setting boot.isolcpus \
        --why 'Keeps other tasks, and interrupts that the kernel manages, off the cores of the workers.' \
        --effect 'What else runs on the host does not delay a worker. Isolated cores are not in the default affinity: give the unit CPUAffinity= with all cores of the core map, or the router sees only the others. Only for hosts that the router has to itself; cpusets are the newer way.' \
        --source 'Documentation/admin-guide/kernel-parameters.txt (isolcpus)' &&
        advise_boot isolcpus managed_irq,domain,
    setting boot.nohz_full \
        --why 'Stops the timer tick on cores with one runnable task.' \
        --effect 'No timer interrupt, which otherwise comes CONFIG_HZ times a second; entering and leaving the kernel gets dearer, so measure both ways.' \
        --source 'Documentation/timers/no_hz.rst; Documentation/admin-guide/kernel-parameters.txt (nohz_full)' &&
        advise_boot nohz_full ''
    setting boot.rcu_nocbs \
        --why 'Moves the freeing of kernel objects (RCU callbacks) off the cores of the workers.' \
        --effect 'Less jitter after bursts of closed connections. Implied by nohz_full.' \
        --source 'Documentation/admin-guide/kernel-parameters.txt (rcu_nocbs); Documentation/admin-guide/kernel-per-CPU-kthreads.rst' &&
        advise_boot rcu_nocbs ''
}

advise_boot() { # PARAMETER PREFIX
    if [ "$worker_count" -eq 0 ] || [ -z "$housekeeping_core" ]; then
        skip 'the workers are not pinned, so no core is theirs'
        return
    fi
    if has_word "$worker_cores" "$housekeeping_core"; then
        skip 'the workers have all cores: one must be left for the rest of the host'
        return
    fi
    if ! read_value /proc/cmdline; then
        skip 'the kernel command line cannot be read'
        return
    fi
    boot_cores=$(printf %s "$worker_cores" | tr ' ' ,)
    boot_present=none
    for boot_word in $value; do
        case $boot_word in
        "$1"=*) boot_present=$boot_word ;;
        esac
    done
    boot_list=${boot_present#"$1"=}
    boot_list=${boot_list#"$2"}
    if read_core_list "$boot_list" && [ "$cores" = "$worker_cores" ]; then
        finding as_wanted '' '' '' "$boot_present" "$1=$2$boot_cores" '' ''
    else
        advise "$boot_present" "$1=$2$boot_cores" "to add to the kernel command line by hand: $1=$2$boot_cores"
    fi
}

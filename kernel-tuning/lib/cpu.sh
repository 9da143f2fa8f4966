# How fast a core runs and how fast it wakes up.

cpu_settings() {
    setting cpu.governor \
        --why 'A core that was slowed down while idle serves the first requests of a burst slowly.' \
        --effect 'Cores stay at a high frequency; more power.' \
        --source 'Documentation/admin-guide/pm/cpufreq.rst (scaling_governor)' &&
        cpu_governors
    setting cpu.idle_states \
        --why 'The first request after a pause pays for leaving the idle state: as many microseconds as the latency file of the state says.' \
        --effect 'Not written here: the gentle way holds /dev/cpu_dma_latency open with a bound (PM QoS; tuned does it as force_latency), or sets power/pm_qos_resume_latency_us per core. It costs power and, with few cores awake, turbo.' \
        --source 'Documentation/admin-guide/pm/cpuidle.rst; Documentation/power/pm_qos_interface.rst' &&
        cpu_idle_states
    setting cpu.turbo \
        --why 'Turbo shortens each request; where the same latency matters more than the lowest one, some turn it off.' \
        --effect 'Only shown: which is better depends on the cooling and on the neighbours. Compare only runs with the same state.' \
        --source 'Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); Documentation/admin-guide/pm/cpufreq.rst (boost)' &&
        cpu_turbo
}

cpu_governors() {
    governors_seen=
    for governor_path in "$root"/sys/devices/system/cpu/cpufreq/policy*/scaling_governor; do
        [ -e "$governor_path" ] || continue
        governors_seen=yes
        governor_folder=${governor_path#"$root"}
        governor_folder=${governor_folder%/*}
        if read_value "$governor_folder/scaling_available_governors" && ! has_word "$value" "$wanted"; then
            skip "the driver offers only: $value" "${governor_folder##*/}"
        else
            examine sysfs "$governor_folder/scaling_governor" "${governor_folder##*/}"
        fi
    done
    [ -n "$governors_seen" ] || skip 'the frequency is not in the hands of this kernel (a virtual machine, or firmware)'
}

has_word() { # LIST WORD
    case " $1 " in
    *" $2 "*) return 0 ;;
    *) return 1 ;;
    esac
}

# Names the slowest idle state of core 0 that is not disabled.
cpu_idle_states() {
    idle_slowest=-1
    for idle_path in "$root"/sys/devices/system/cpu/cpu0/cpuidle/state*; do
        idle_state=${idle_path#"$root"}
        read_value "$idle_state/disable" && [ "$value" = 0 ] || continue
        read_value "$idle_state/latency" && is_number "$value" || continue
        if [ "$value" -gt "$idle_slowest" ]; then
            idle_slowest=$value
            read_value "$idle_state/name" || value=${idle_state##*/}
            idle_name=$value
        fi
    done
    if [ "$idle_slowest" -lt 0 ]; then
        skip 'idle states are not in the hands of this kernel'
    elif number_at_least "$wanted" "$idle_slowest"; then
        finding as_wanted '' '' '' "$idle_name, $idle_slowest us to leave" "at most $wanted us" '' ''
    else
        advise "$idle_name, $idle_slowest us to leave" "at most $wanted us" "bound the wake-up to $wanted us through PM QoS"
    fi
}

cpu_turbo() {
    if read_value /sys/devices/system/cpu/intel_pstate/no_turbo; then
        [ "$value" = 0 ] && turbo=on || turbo=off
    elif read_value /sys/devices/system/cpu/cpufreq/boost; then
        [ "$value" = 1 ] && turbo=on || turbo=off
    else
        skip 'the kernel does not tell'
        return
    fi
    if [ "$turbo" = "$wanted" ]; then
        finding as_wanted '' '' '' "$turbo" "$wanted" '' ''
    else
        advise "$turbo" "$wanted" 'see the firmware, or no_turbo and boost in sysfs'
    fi
}

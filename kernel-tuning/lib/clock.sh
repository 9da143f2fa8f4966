# The clock that every deadline is read from.

clock_settings() {
    setting clock.source \
        --why 'These clocks are read in user space, without a system call; hpet, acpi_pm and the like need one, and slow hardware.' \
        --effect 'Cheaper deadlines and timings. A clock that the kernel took off its list, because it found it unstable, is never chosen.' \
        --source 'Documentation/admin-guide/kernel-parameters.txt (clocksource=, tsc=); Amazon EC2 user guide: time and clock source' &&
        clock_source
}

clock_source() {
    clock_folder=/sys/devices/system/clocksource/clocksource0
    if ! read_value $clock_folder/available_clocksource; then
        skip 'the kernel does not tell its clocks'
        return
    fi
    clocks=$value
    read_value $clock_folder/current_clocksource || value=unknown
    if named_in "$wanted" "$value"; then
        examine sysfs $clock_folder/current_clocksource
        return
    fi
    clocks_left=$wanted,
    while [ -n "$clocks_left" ]; do
        clock=${clocks_left%%,*}
        clocks_left=${clocks_left#*,}
        if has_word "$clocks" "$clock"; then
            relation='='
            examine sysfs $clock_folder/current_clocksource '' "$clock"
            return
        fi
    done
    advise "$value" "one of $wanted" "this kernel offers only: $clocks"
}

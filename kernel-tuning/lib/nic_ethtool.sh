# What only ethtool reads and writes. A target is "INTERFACE GROUP NAME", such as "eth0 coalesce rx-usecs".

nic_hardware() {
    setting nic.ring_rx \
        --why 'A burst larger than the receive ring is dropped by the card; a ring much larger than needed spoils the cache.' \
        --effect 'Up to what the card has. Many drivers take the link down for a moment when it changes: not under load.' \
        --source 'ethtool(8) -G; RHEL 9: Monitoring and managing system status and performance, network performance' &&
        for_each_nic examine_ethtool ring rx
    setting nic.adaptive_rx \
        --why 'Adaptive coalescing trades latency against interrupts by guessing from the load.' \
        --effect 'Off: the delay is bounded by rx-usecs. On: fewer interrupts under load.' \
        --source 'ethtool(8) -C; Intel Ethernet 800 Series Linux Performance Tuning Guide; NVIDIA: Performance Tuning for Mellanox Adapters' &&
        for_each_nic examine_ethtool coalesce adaptive-rx
    setting nic.rx_usecs \
        --why 'How long the card waits for more packets before it interrupts: it is added to the latency of each request, twice through a proxy.' \
        --effect 'A shorter wait, for more interrupts and so more CPU at high packet rates.' \
        --source 'ethtool(8) -C; Intel Ethernet 800 Series Linux Performance Tuning Guide; NVIDIA: Performance Tuning for Mellanox Adapters' &&
        for_each_nic examine_ethtool coalesce rx-usecs
    setting nic.tso \
        --why 'Without segmentation in the card the CPU cuts large answers into packets.' \
        --effect 'Less CPU for bodies above one packet; no effect on small ones.' \
        --source 'Documentation/networking/segmentation-offloads.rst; ethtool(8) -K' &&
        for_each_nic examine_ethtool feature tso
    setting nic.gso \
        --why 'Where the card cannot segment, doing it late in the kernel still saves a walk through the stack per packet.' \
        --effect 'Less CPU for bodies above one packet.' \
        --source 'Documentation/networking/segmentation-offloads.rst; ethtool(8) -K' &&
        for_each_nic examine_ethtool feature gso
    setting nic.gro \
        --why 'Packets of one connection that arrive together go up the stack as one.' \
        --effect 'Less CPU for bodies above one packet. It merges what one poll of the card brought, so it holds nothing back (unless gro_flush_timeout is set).' \
        --source 'Documentation/networking/segmentation-offloads.rst; ethtool(8) -K' &&
        for_each_nic examine_ethtool feature gro
    setting nic.lro \
        --why 'Merging in the card loses information that GRO keeps, and must be off wherever packets are forwarded, as on hosts of containers.' \
        --effect 'GRO does the merging.' \
        --source 'ethtool(8) -K; Documentation/networking/ip-sysctl.rst (ip_forward)' &&
        for_each_nic examine_ethtool feature lro
}

# Under --root only that root's ethtool is asked, never the host's.
find_ethtool() {
    ethtool_at_boot=/usr/sbin/ethtool
    if [ -n "$root" ]; then
        ethtool_path=$root/usr/sbin/ethtool
        [ -x "$ethtool_path" ]
    else
        ethtool_path=$(command -v ethtool 2>/dev/null) && ethtool_at_boot=$ethtool_path
    fi
}

examine_ethtool() { # GROUP NAME, of $nic
    if ! find_ethtool; then
        skip 'ethtool is not installed' "$nic"
    elif ! read_ethtool "$nic" "$1" "$2"; then
        skip 'the driver does not tell' "$nic"
    else
        ethtool_wanted=$wanted
        if [ "$1" = ring ] && is_number "$ethtool_maximum" && ! number_at_least "$ethtool_maximum" "$wanted"; then
            ethtool_wanted=$ethtool_maximum
        fi
        judge "$value" "$relation" "$ethtool_wanted"
        if [ "$verdict" = differs ] && [ -n "$ethtool_fixed" ]; then
            skip "the driver has it fixed: $value" "$nic"
            return
        fi
        [ "$verdict" = failed ] || [ -n "$ethtool_fixed" ] ||
            remember_for_interface "$nic" "RUN+=\"$ethtool_at_boot $(ethtool_flag "$1") \$name $2 $target_value\""
        finding "$verdict" "$nic" ethtool "$nic $1 $2" "$value" "$wanted_words" "$target_value" "$verdict_note"
    fi
}

ethtool_flag() { # GROUP
    case $1 in
    ring) printf %s -G ;;
    coalesce) printf %s -C ;;
    feature) printf %s -K ;;
    esac
}

# Sets $value, $ethtool_maximum (rings) and $ethtool_fixed. Fails if the driver does not have it.
read_ethtool() { # INTERFACE GROUP NAME
    ethtool_maximum=
    ethtool_fixed=
    value=
    case $2 in
    ring) read_ethtool_ring "$1" ;;
    coalesce) read_ethtool_coalesce "$1" "$3" ;;
    feature) read_ethtool_feature "$1" "$3" ;;
    esac
    case $value in
    '' | n/a) return 1 ;;
    esac
}

read_ethtool_ring() { # INTERFACE
    # The maximum comes first, what holds second.
    ethtool_numbers=$("$ethtool_path" -g "$1" 2>/dev/null | awk '$1 == "RX:" { print $2 }' | tr '\n' ' ')
    fold_blanks "$ethtool_numbers"
    ethtool_maximum=${value%% *}
    case $value in
    *' '*) value=${value#* } ;;
    *) value= ;;
    esac
}

read_ethtool_coalesce() { # INTERFACE NAME
    case $2 in
    adaptive-rx) value=$("$ethtool_path" -c "$1" 2>/dev/null | awk '$1 == "Adaptive" && $2 == "RX:" { print $3; exit }') ;;
    *) value=$("$ethtool_path" -c "$1" 2>/dev/null | awk -v name="$2:" '$1 == name { print $2; exit }') ;;
    esac
}

read_ethtool_feature() { # INTERFACE NAME
    case $2 in
    tso) ethtool_long=tcp-segmentation-offload ;;
    gso) ethtool_long=generic-segmentation-offload ;;
    gro) ethtool_long=generic-receive-offload ;;
    lro) ethtool_long=large-receive-offload ;;
    esac
    ethtool_line=$("$ethtool_path" -k "$1" 2>/dev/null | awk -v name="$ethtool_long:" '$1 == name { print $2, $3; exit }')
    value=${ethtool_line%% *}
    case $ethtool_line in
    *'[fixed]'*) ethtool_fixed=yes ;;
    esac
}

# The exit status is not looked at: "no change" is an error to some versions. The caller reads back.
write_ethtool() { # INTERFACE GROUP NAME VALUE
    find_ethtool && "$ethtool_path" "$(ethtool_flag "$2")" "$1" "$3" "$4" >/dev/null 2>&1
    :
}

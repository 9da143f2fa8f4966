# Resource limits of switchboard-router.service. A limit belongs to a process, so only the unit can set it.

ROUTER_UNIT=switchboard-router.service

limits_settings() {
    setting limits.nofile \
        --why 'Each client and each upstream connection is a descriptor: up to 16384 clients per worker, as many towards the models, and the idle ones that are kept.' \
        --effect 'The hard limit; the router raises its own soft limit to it at start. systemd gives 524288 by default since version 240, and older or hardened hosts less.' \
        --source 'systemd.exec(5) LimitNOFILE=; NEWS of systemd 240; router/src/net/descriptors.rs' &&
        examine_limit LimitNOFILE
    setting limits.memlock \
        --why 'Before Linux 5.12 the memory of a ring counts as locked memory, and registered buffers still do; 64 KiB, an old default, is less than one ring of 4096 entries.' \
        --effect 'Room for the rings of about a hundred workers. It is a limit, nothing is reserved.' \
        --source 'README of liburing (ulimit settings); io_uring_register(2); systemd.exec(5) LimitMEMLOCK=' &&
        examine_limit LimitMEMLOCK
}

examine_limit() { # DIRECTIVE
    if [ ! -d "$root/etc/systemd/system" ]; then
        skip 'no systemd here: raise the limit where the router is started (ulimit)'
        return
    fi
    limit_unit=
    for limit_folder in /etc /run /usr/lib /lib; do
        [ -z "$limit_unit" ] && [ -f "$root$limit_folder/systemd/system/$ROUTER_UNIT" ] &&
            limit_unit=$root$limit_folder/systemd/system/$ROUTER_UNIT
    done
    if [ -z "$limit_unit" ]; then
        skip "no $ROUTER_UNIT here"
        return
    fi
    limit_words=$(cat "$limit_unit" "$root/usr/lib/systemd/system/$ROUTER_UNIT.d/"*.conf \
        "$root/run/systemd/system/$ROUTER_UNIT.d/"*.conf "$root/etc/systemd/system/$ROUTER_UNIT.d/"*.conf \
        2>/dev/null | sed -n "s/^$1=//p" | tail -n 1)
    judge_limit "$1" "$limit_words"
}

judge_limit() { # DIRECTIVE VALUE
    limit_note=
    [ -n "$persist" ] || limit_note='a limit of a unit: only --persist changes it'
    take_hard_limit "$2"
    if [ -z "$2" ]; then
        finding differs '' unit "$ROUTER_UNIT $1" 'not set in the unit' "at least $wanted" "$wanted" "$limit_note"
        unit_lines="$unit_lines$1=$wanted$NL"
    elif [ "$limit" = infinity ] || { is_number "$limit" && number_at_least "$limit" "$wanted"; }; then
        finding as_wanted '' unit "$ROUTER_UNIT $1" "$2" "at least $wanted" "$2" ''
        unit_lines="$unit_lines$1=$2$NL"
    elif is_number "$limit"; then
        finding differs '' unit "$ROUTER_UNIT $1" "$2" "at least $wanted" "$wanted" "$limit_note"
        unit_lines="$unit_lines$1=$wanted$NL"
    else
        finding failed '' unit "$ROUTER_UNIT $1" "$2" "at least $wanted" '' 'not a limit that systemd.exec(5) knows'
    fi
}

# The hard one of "soft:hard", in bytes or descriptors, in $limit; suffixes are powers of 1024.
take_hard_limit() { # VALUE
    limit=${1##*:}
    limit_factor=1
    case $limit in
    *K) limit_factor=1024 ;;
    *M) limit_factor=1048576 ;;
    *G) limit_factor=1073741824 ;;
    esac
    [ $limit_factor -eq 1 ] || limit=${limit%?}
    if is_number "$limit" && [ ${#limit} -le 9 ]; then
        # Leading zeros would make it octal.
        limit=${limit#"${limit%%[!0]*}"}
        limit=$((${limit:-0} * limit_factor))
    fi
}

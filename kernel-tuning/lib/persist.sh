# The files that make the settings hold after a restart. Written only with --persist, removed by revert.
# They hold what this run looked at; --only and --except narrow them as they narrow the rest.

PERSIST_SYSCTL=/etc/sysctl.d/90-switchboard.conf
PERSIST_TMPFILES=/etc/tmpfiles.d/90-switchboard.conf
PERSIST_UDEV=/etc/udev/rules.d/90-switchboard.rules
PERSIST_UNIT=/etc/systemd/system/$ROUTER_UNIT.d/90-tuning.conf

persist_settings() {
    area=persist
    relation='='
    persist_setting persist.sysctl $PERSIST_SYSCTL "$sysctl_lines" 'sysctl.d(5)'
    persist_setting persist.tmpfiles $PERSIST_TMPFILES "$tmpfiles_lines" 'tmpfiles.d(5)'
    persist_setting persist.udev $PERSIST_UDEV "$udev_lines" 'udev(7)'
    persist_setting persist.unit $PERSIST_UNIT "$unit_lines" 'systemd.unit(5), drop-ins'
    [ -z "$sysctl_lines" ] || warn_of_overrides
}

persist_setting() { # ID PATH LINES SOURCE
    setting_id=$1
    why='What is written into /proc and /sys is gone after a restart.'
    effect='The values of this profile are set again at each start.'
    source=$4
    if [ -z "$3" ]; then
        skip 'nothing to keep'
    elif ! persist_has_reader "$1"; then
        skip 'this host has nothing that would read the file'
    elif [ -L "$root$2" ]; then
        finding failed '' file "$2" 'a symbolic link' 'a file' '' 'it is not followed'
    elif [ ! -e "$root$2" ]; then
        finding differs '' file "$2" absent "the profile's content" "the profile's content" ''
    elif [ "$(persisted_content "$2")" = "$(cat "$root$2" 2>/dev/null)" ]; then
        finding as_wanted '' file "$2" "the profile's content" "the profile's content" '' ''
    else
        finding differs '' file "$2" 'other content' "the profile's content" "the profile's content" ''
    fi
}

persist_has_reader() { # ID
    case $1 in
    persist.sysctl) return 0 ;;
    persist.tmpfiles) [ -d "$root/usr/lib/tmpfiles.d" ] || [ -d "$root/etc/tmpfiles.d" ] ;;
    persist.udev) [ -d "$root/usr/lib/udev" ] || [ -d "$root/lib/udev" ] || [ -d "$root/etc/udev" ] ;;
    persist.unit) [ -d "$root/etc/systemd/system" ] ;;
    esac
}

persisted_content() { # PATH
    printf '# Written by: tune apply --persist --profile %s\n# `tune revert` takes it back.\n' "$profile"
    case $1 in
    "$PERSIST_SYSCTL") printf %s "$sysctl_lines" ;;
    "$PERSIST_TMPFILES") printf %s "$tmpfiles_lines" ;;
    "$PERSIST_UDEV") printf %s "$udev_lines" ;;
    "$PERSIST_UNIT") printf '[Service]\n%s' "$unit_lines" ;;
    esac
}

# Later files win, and /etc/sysctl.conf is the last for `sysctl --system`: what they say is the operator's
# will, but it should not surprise.
warn_of_overrides() {
    setting_id=persist.sysctl
    override_left=$sysctl_lines
    while [ -n "$override_left" ]; do
        override_key=${override_left%% =*}
        override_left=${override_left#*"$NL"}
        for override_file in "$root"/etc/sysctl.conf "$root"/etc/sysctl.d/*.conf; do
            case ${override_file#"$root"} in
            /etc/sysctl.conf | /etc/sysctl.d/9[1-9]* | /etc/sysctl.d/[A-Za-z]*) ;;
            *) continue ;;
            esac
            # Debian and RHEL link /etc/sysctl.conf into sysctl.d: told once.
            [ ! -L "$override_file" ] || continue
            if grep -q "^[[:blank:]]*$override_key[[:blank:]]*=" "$override_file" 2>/dev/null; then
                advise "$override_key in ${override_file#"$root"}" 'only one file sets it' 'that file is read later and wins' "$override_key"
            fi
        done
    done
}

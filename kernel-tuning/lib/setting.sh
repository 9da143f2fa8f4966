# What a setting is, and the list of what was found about it. Areas declare settings with `setting`, then
# call `examine` for each place where the host has it.

findings=
known_settings=
# Lines for the files of --persist; persist.sh makes the files of them.
sysctl_lines=
tmpfiles_lines=
udev_lines=
unit_lines=

examine_host() {
    for area in $AREAS; do
        "${area}_settings"
    done
    check_profile_ids
    [ -z "$only" ] || check_names "$only"
    [ -z "$except" ] || check_names "$except"
    [ -z "$persist" ] || persist_settings
}

# Declares a setting. Succeeds if it is to be examined: the profile wants it and the flags leave it in.
# `explain` prints it instead. --measured names the run that shows what the setting does, where one can.
setting() { # ID --why TEXT --effect TEXT --source TEXT [--measured TEXT]
    setting_id=$1
    measured=$NOT_MEASURED
    shift
    while [ $# -ge 2 ]; do
        case $1 in
        --why) why=$2 ;;
        --effect) effect=$2 ;;
        --source) source=$2 ;;
        --measured) measured=$2 ;;
        esac
        shift 2
    done
    known_settings="$known_settings $setting_id"
    case $command in
    explain)
        explain_setting
        return 1
        ;;
    esac
    selected "$setting_id" && profile_wants "$setting_id"
}

# Notes one finding. The verdict is one of as_wanted, differs, skipped, advice, failed.
# VALUE is what apply would write. The fields are read back, in this order, with
# `read -r verdict id instance of_area kind target present wanted value relation note why effect source measured`.
finding() { # VERDICT INSTANCE KIND TARGET PRESENT WANTED VALUE NOTE
    findings="$findings$1$FIELD$setting_id$FIELD$2$FIELD$area$FIELD$3$FIELD$4$FIELD$5$FIELD$6$FIELD$7$FIELD$relation$FIELD$8$FIELD$why$FIELD$effect$FIELD$source$FIELD$measured$NL"
}

# What the host does not have is skipped with a word.
skip() { # NOTE [INSTANCE]
    finding skipped "${2-}" '' '' '' '' '' "$1"
}

# What only a person can do.
advise() { # PRESENT WANTED NOTE [INSTANCE]
    finding advice "${4-}" '' '' "$1" "$2" '' "$3"
}

# Judges one place of the current setting. Kinds: sysctl, sysfs, select (sysfs with the chosen word in
# brackets), queue (sysfs of a network queue), irq.
examine() { # KIND PATH [INSTANCE [WANTED]]
    place_wanted=${4-$wanted}
    if [ ! -e "$root$2" ]; then
        skip "there is no $2 here (this kernel or this namespace does not have it)" "${3-}"
        return
    fi
    if ! read_value "$2"; then
        finding failed "${3-}" "$1" "$2" '' "$place_wanted" '' 'cannot be read'
        return
    fi
    if [ "$1" = select ] && ! take_selected "$value" "$place_wanted"; then
        skip "this kernel does not offer '$place_wanted' (it has: $value)" "${3-}"
        return
    fi
    judge "$value" "$relation" "$place_wanted"
    case $verdict in
    as_wanted | differs) remember "$1" "$2" "$target_value" ;;
    esac
    finding "$verdict" "${3-}" "$1" "$2" "$value" "$wanted_words" "$target_value" "$verdict_note"
}

# "always [madvise] never" has madvise selected: leaves it in $value. Fails if WORD is not offered.
take_selected() { # LINE WORD
    case " $1 " in
    *" $2 "* | *" [$2] "*) ;;
    *) return 1 ;;
    esac
    value=${1#*\[}
    value=${value%%\]*}
}

# Collects what --persist would write so that this value holds after a restart.
remember() { # KIND PATH VALUE
    case $1 in
    sysctl)
        sysctl_key=${2#/proc/sys/}
        sysctl_lines="$sysctl_lines$(printf '%s' "$sysctl_key" | tr / .) = $3$NL"
        ;;
    sysfs | select) tmpfiles_lines="${tmpfiles_lines}w $2 - - - - $3$NL" ;;
    queue)
        queue_path=${2#/sys/class/net/}
        remember_for_interface "${queue_path%%/*}" "ATTR{${queue_path#*/}}=\"$3\""
        ;;
    esac
}

# The interface is named by its address, since the kernel's name changes when udev renames it;
# DRIVERS keeps out VLANs and bridges that share the address.
remember_for_interface() { # INTERFACE ASSIGNMENT
    interface_address=$(cat "$root/sys/class/net/$1/address" 2>/dev/null)
    case $interface_address in
    *[!0-9a-f:]* | '') return 0 ;;
    esac
    udev_lines="${udev_lines}ACTION==\"add\", SUBSYSTEM==\"net\", DRIVERS==\"?*\", ATTR{address}==\"$interface_address\", $2$NL"
}

# Sets $differing, $failing, $fitting, $skipping and $advising.
count_findings() {
    fitting=0 differing=0 skipping=0 advising=0 failing=0
    while IFS=$FIELD read -r verdict rest; do
        case $verdict in
        as_wanted) fitting=$((fitting + 1)) ;;
        differs) differing=$((differing + 1)) ;;
        skipped) skipping=$((skipping + 1)) ;;
        advice) advising=$((advising + 1)) ;;
        failed) failing=$((failing + 1)) ;;
        esac
    done <<END
$findings
END
}

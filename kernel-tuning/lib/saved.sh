# What was there before the first apply: one folder per target under STATE/saved, numbered in the order of
# the changes, with the files setting, instance, kind, target, boot, and before (or before.absent).
# A record is made whole under another name and then renamed, so there is no torn one; it is there before
# its target is written, so a killed apply can be reverted.

# Takes the state folder for this process. Fails, with $refused set, if it cannot or must not be used.
open_state() {
    state=$root$state_dir
    make_folder_chain "$state_dir" || {
        refused="the state folder $state cannot be made"
        return 1
    }
    if ! state_is_ours; then
        refused="$state, or something in it, belongs to another user or is writable for others: revert writes as root what is saved there"
        return 1
    fi
    if ! mkdir "$state/lock" 2>/dev/null && ! take_stale_lock; then
        refused="$state/lock is held by process $lock_holder"
        return 1
    fi
    printf '%s\n' $$ >"$state/lock/pid" && mkdir -p "$state/saved" && return 0
    refused="$state cannot be written"
    close_state
    return 1
}

# Remembers which folders were not there, so that close_state can remove them again.
make_folder_chain() { # PATH
    made_folders=
    chain_left=$1
    while [ -n "$chain_left" ] && [ ! -d "$root$chain_left" ]; do
        made_folders="$chain_left$NL$made_folders"
        chain_left=${chain_left%/*}
    done
    mkdir -p "$root$1" 2>/dev/null || return 1
    [ -z "$made_folders" ] || printf %s "$made_folders" >"$root$1/made-folders"
}

# Under --root the caller may be anybody.
state_is_ours() {
    [ -n "$root" ] || [ -z "$(find "$state" \( ! -user 0 -o -perm -0002 -o -perm -0020 \) ! -type l -print 2>/dev/null)" ]
}

# A lock whose process is gone was left by a kill.
take_stale_lock() {
    lock_holder=unknown
    { IFS= read -r lock_holder <"$state/lock/pid"; } 2>/dev/null
    is_number "$lock_holder" && ! kill -0 "$lock_holder" 2>/dev/null
}

# With nothing saved, what this tool made is removed.
close_state() {
    rm -rf "$state/lock" "$state"/saved/.new
    rmdir "$state/saved" 2>/dev/null || return 0
    closing=
    while IFS= read -r folder; do
        closing="$folder$NL$closing"
    done 2>/dev/null <"$state/made-folders"
    rm -f "$state/made-folders"
    while IFS= read -r folder; do
        [ -z "$folder" ] || rmdir "$root$folder" 2>/dev/null
    done <<END
$closing
END
    :
}

# Reads one word file of a record into $value.
read_record() { # RECORD NAME
    value=
    { IFS= read -r value <"$1/$2"; } 2>/dev/null
    :
}

boot_id() {
    read_value /proc/sys/kernel/random/boot_id || value=unknown
}

# Interrupt numbers may mean another device after a restart, and the restart has undone the change.
record_is_stale() { # RECORD
    read_record "$1" kind
    [ "$value" = irq ] || return 1
    read_record "$1" boot
    stale_boot=$value
    boot_id
    [ "$value" != "$stale_boot" ]
}

# The record of this target, in $record; empty if there is none.
find_record() { # KIND TARGET
    for record in "$state"/saved/[0-9]*; do
        [ -d "$record" ] || continue
        read_record "$record" target
        [ "$value" = "$2" ] || continue
        read_record "$record" kind
        [ "$value" = "$1" ] || continue
        if record_is_stale "$record"; then
            rm -rf "$record"
            break
        fi
        return
    done
    record=
}

# Saves what is there, unless an earlier apply did. Sets $record and $record_is_new.
save_target() { # SETTING INSTANCE KIND TARGET
    record_is_new=
    find_record "$3" "$4"
    if [ -n "$record" ]; then
        # The original stays; this copy is only for rolling back this run.
        copy_target "$3" "$4" "$record/undo"
        return
    fi
    record_new=$state/saved/.new
    rm -rf "$record_new"
    mkdir "$record_new" || return 1
    boot_id
    printf '%s\n' "$value" >"$record_new/boot" &&
        printf '%s\n' "$1" >"$record_new/setting" &&
        printf '%s\n' "$2" >"$record_new/instance" &&
        printf '%s\n' "$3" >"$record_new/kind" &&
        printf '%s\n' "$4" >"$record_new/target" || return 1
    [ "$3" = folder ] || copy_target "$3" "$4" "$record_new/before" || return 1
    record_last=0
    for record in "$state"/saved/[0-9]*; do
        [ -d "$record" ] && record_last=${record##*/}
    done
    # Leading zeros would make it octal.
    record_last=${record_last#"${record_last%%[!0]*}"}
    record=$state/saved/$(printf '%06d' $((${record_last:-0} + 1)))
    mv "$record_new" "$record" || return 1
    record_is_new=yes
}

# What may be restored. A record that names anything else was not made by this tool.
record_is_sound() { # RECORD; sets $kind, $target, $id and $instance
    read_record "$1" kind
    kind=$value
    read_record "$1" target
    target=$value
    read_record "$1" setting
    id=$value
    read_record "$1" instance
    instance=$value
    case $target in
    *..*) return 1 ;;
    esac
    case "$kind $target" in
    'sysctl /proc/sys/'* | 'sysfs /sys/devices/system/'* | 'select /sys/kernel/mm/'*) ;;
    'queue /sys/class/net/'*/queues/* | 'irq /proc/irq/'*/smp_affinity_list | 'ethtool '*' '*' '*) ;;
    "file $PERSIST_SYSCTL" | "file $PERSIST_TMPFILES" | "file $PERSIST_UDEV" | "file $PERSIST_UNIT" | 'folder /etc/'*) ;;
    *) return 1 ;;
    esac
    [ "$kind" = folder ] || [ -e "$1/before" ] || [ -e "$1/before.absent" ]
}

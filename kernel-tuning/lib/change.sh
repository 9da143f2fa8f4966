# Reading, writing and restoring one target, whatever its kind. Nothing here decides.

# Whether this process may write there. A read-only mount says no, also to root.
may_write() { # KIND TARGET
    case $1 in
    ethtool) return 0 ;;
    file)
        may_write_folder=$2
        while [ ! -e "$root$may_write_folder" ]; do
            may_write_folder=${may_write_folder%/*}
        done
        [ -w "$root$may_write_folder/" ] || [ -w "$root$may_write_folder" ]
        ;;
    *) [ -w "$root$2" ] ;;
    esac
}

# Writes, then reads back: the kernel may refuse a value, or keep its own, without an error.
write_target() { # KIND TARGET VALUE RELATION
    case $1 in
    file)
        persisted_content "$2" >"$root$2.new" && mv "$root$2.new" "$root$2" && return 0
        rm -f "$root$2.new"
        return 1
        ;;
    ethtool)
        # shellcheck disable=SC2086 # "eth0 ring rx" are three words
        write_ethtool $2 "$3"
        ;;
    *) write_value "$2" "$3" || return 1 ;;
    esac
    read_target "$1" "$2" || return 1
    judge "$value" "$4" "$3"
    [ "$verdict" = as_wanted ]
}

# The value that holds now, in $value.
read_target() { # KIND TARGET
    case $1 in
    ethtool)
        # shellcheck disable=SC2086 # "eth0 ring rx" are three words
        find_ethtool && read_ethtool $2
        ;;
    select)
        read_value "$2" || return 1
        value=${value#*\[}
        value=${value%%\]*}
        ;;
    *) read_value "$2" ;;
    esac
}

# Copies what is there, byte by byte, to PATH; an absent file leaves PATH.absent.
copy_target() { # KIND TARGET PATH
    rm -f "$3" "$3.absent"
    case $1 in
    ethtool) read_target "$1" "$2" && printf '%s\n' "$value" >"$3" ;;
    file)
        if [ -e "$root$2" ]; then
            cp -p "$root$2" "$3"
        else
            : >"$3.absent"
        fi
        ;;
    *) cat "$root$2" >"$3" 2>/dev/null ;;
    esac
}

# Puts back what copy_target copied, and looks whether it is there.
restore_target() { # KIND TARGET PATH
    case $1 in
    folder)
        # Somebody else's files in it are theirs.
        rmdir "$root$2" 2>/dev/null || [ ! -d "$root$2" ] || [ -n "$(ls -A "$root$2")" ]
        ;;
    file)
        if [ -e "$3.absent" ]; then
            rm -f "$root$2"
        else
            cp -p "$3" "$root$2.new" && mv "$root$2.new" "$root$2" && same_bytes "$3" "$root$2"
        fi
        ;;
    ethtool)
        read_saved_value "$3" || return 1
        restore_ethtool "$2" "$value"
        ;;
    select)
        restore_selected "$2" "$3"
        ;;
    *)
        { cat "$3" >"$root$2"; } 2>/dev/null
        same_bytes "$3" "$root$2"
        ;;
    esac
}

restore_ethtool() { # TARGET VALUE
    # shellcheck disable=SC2086 # "eth0 ring rx" are three words
    write_ethtool $1 "$2"
    restored_value=$2
    read_target ethtool "$1" && [ "$value" = "$restored_value" ]
}

# The kernel takes the one word and brackets it itself; a fake root's file takes the whole line.
restore_selected() { # TARGET PATH
    if [ -n "$root" ]; then
        { cat "$2" >"$root$1"; } 2>/dev/null
    else
        read_saved_value "$2" || return 1
        value=${value#*\[}
        write_value "$1" "${value%%\]*}"
    fi
    same_bytes "$2" "$root$1"
}

read_saved_value() { # PATH
    { IFS= read -r value <"$1"; } 2>/dev/null
    [ -n "$value" ]
}

# Whether a target is still there: a card may be gone, and with it what was set on it.
target_is_there() { # KIND TARGET
    case $1 in
    file | folder) return 0 ;;
    ethtool) [ -e "$root/sys/class/net/${2%% *}" ] ;;
    *) [ -e "$root$2" ] ;;
    esac
}

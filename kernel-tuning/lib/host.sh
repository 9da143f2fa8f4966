# The host's files. Every path of the host is prefixed with $root here or where it is tested.

NL='
'
FIELD=$(printf '\037')

# A value longer than this is nothing that this tool writes; the longest is a kernel command line.
VALUE_CHARACTERS_MAX=4096

# Reads a file into $value, with each run of blanks made one space.
# Fails if there is no such file or the kernel does not let it be read.
#
# With cat, since dash's own `read` asks for one byte at a time, and a file of /proc/sys answers only the
# first such call: a swappiness of 60 would be 6.
read_value() { # PATH
    value=
    [ -r "$root$1" ] && [ ! -d "$root$1" ] || return 1
    value=$(cat "$root$1" 2>/dev/null)
    [ -n "$value" ] && [ ${#value} -le $VALUE_CHARACTERS_MAX ] || return 1
    fold_blanks "$value"
}

fold_blanks() { # TEXT
    set -f
    # shellcheck disable=SC2086 # splitting is what folds
    set -- $1
    set +f
    value="$*"
}

# Writes in one go, as the kernel's files ask for. What the kernel made of it is read back by the caller.
write_value() { # PATH VALUE
    { printf '%s\n' "$2" >"$root$1"; } 2>/dev/null
}

# Not with cmp, which a minimal RHEL lacks and which believes the size that sysfs claims.
same_bytes() { # PATH PATH
    [ "$(cat "$1" 2>/dev/null && printf .)" = "$(cat "$2" 2>/dev/null && printf .)" ]
}

is_number() {
    case $1 in
    '' | *[!0-9]*) return 1 ;;
    esac
}

# Whether A >= B; both are numbers. Above 18 digits the shell's own arithmetic would overflow.
number_at_least() { # A B
    [ ${#1} -le 18 ] || return 0
    [ ${#2} -le 18 ] || return 1
    [ "$1" -ge "$2" ]
}

# Spells "0-2,5" as "0 1 2 5" in $cores. Fails on anything else.
read_core_list() { # LIST
    cores=
    case $1 in
    '' | *[!0-9,-]*) return 1 ;;
    esac
    list_left=$1,
    while [ -n "$list_left" ]; do
        list_part=${list_left%%,*}
        list_left=${list_left#*,}
        list_first=${list_part%%-*}
        list_last=${list_part#*-}
        is_core "$list_first" && is_core "$list_last" || return 1
        while [ "$list_first" -le "$list_last" ]; do
            cores="$cores${cores:+ }$list_first"
            list_first=$((list_first + 1))
        done
    done
}

# The kernel's own upper limit of NR_CPUS on x86 is 8192.
is_core() {
    is_number "$1" && [ ${#1} -le 4 ] && [ "$1" -lt 8192 ]
}

# The kernel's spelling of a set of cores, such as "3" or "1,00000000", in $mask.
mask_of() { # CORE...
    mask=
    mask_word=0
    for mask_core in "$@"; do
        [ $((mask_core / 32)) -le $mask_word ] || mask_word=$((mask_core / 32))
    done
    while [ $mask_word -ge 0 ]; do
        mask_bits=0
        for mask_core in "$@"; do
            [ $((mask_core / 32)) -ne $mask_word ] || mask_bits=$((mask_bits | (1 << (mask_core % 32))))
        done
        if [ -z "$mask" ]; then
            mask=$(printf '%x' "$mask_bits")
        else
            mask=$mask,$(printf '%08x' "$mask_bits")
        fi
        mask_word=$((mask_word - 1))
    done
}

# The same mask without what the kernel pads it with, in $mask.
bare_mask() { # MASK
    mask=
    mask_left=$1
    while [ -n "$mask_left" ]; do
        mask=$mask${mask_left%%,*}
        case $mask_left in
        *,*) mask_left=${mask_left#*,} ;;
        *) mask_left= ;;
        esac
    done
    while :; do
        case $mask in
        0?*) mask=${mask#0} ;;
        *) return ;;
        esac
    done
}

in_container() {
    [ -e "$root/.dockerenv" ] || [ -e "$root/run/.containerenv" ] || [ -e "$root/run/systemd/container" ]
}

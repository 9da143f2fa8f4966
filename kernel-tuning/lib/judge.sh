# Whether a value is as wanted. Pure: no file is touched here.

# Sets $verdict, $target_value (what to write so that it is as wanted), $wanted_words and $verdict_note.
# Relations:
#   =        the same, blanks aside
#   >= <=    number by number; `-` in the wanted ones leaves that one alone
#   covers   a range of ports that reaches at least as far on both sides
#   one-of   any of these, separated by commas; the first that the host offers is written
#   mask     the same set of cores, however the kernel pads it
judge() { # PRESENT RELATION WANTED
    verdict=differs
    verdict_note=
    target_value=$3
    wanted_words=$3
    case $2 in
    =)
        [ "$1" != "$3" ] || verdict=as_wanted
        ;;
    '>=')
        wanted_words="at least $3"
        judge_numbers "$1" '>=' "$3"
        ;;
    '<=')
        wanted_words="at most $3"
        judge_numbers "$1" '<=' "$3"
        ;;
    covers)
        wanted_words="at least the range $3"
        judge_range "$1" "$3"
        ;;
    one-of)
        wanted_words="one of $3"
        ! named_in "$3" "$1" || verdict=as_wanted
        ;;
    mask)
        bare_mask "$1"
        judged_mask=$mask
        bare_mask "$3"
        [ "$judged_mask" != "$mask" ] || verdict=as_wanted
        ;;
    esac
    [ "$verdict" != as_wanted ] || target_value=$1
}

judge_numbers() { # PRESENT RELATION WANTED
    numbers_wanted=$3
    numbers_relation=$2
    target_value=
    verdict=as_wanted
    for number in $1; do
        number_wanted=${numbers_wanted%% *}
        numbers_wanted=${numbers_wanted#* }
        if ! is_number "$number"; then
            verdict=failed
            verdict_note="'$1' is not what a kernel prints here"
            return
        fi
        if [ "$number_wanted" != - ] && ! number_fits "$number" "$numbers_relation" "$number_wanted"; then
            verdict=differs
            number=$number_wanted
        fi
        target_value="$target_value${target_value:+ }$number"
    done
}

number_fits() { # PRESENT RELATION WANTED
    case $2 in
    '>=') number_at_least "$1" "$3" ;;
    '<=') number_at_least "$3" "$1" ;;
    esac
}

judge_range() { # PRESENT WANTED
    range_first=${1%% *}
    range_last=${1##* }
    if ! is_number "$range_first" || ! is_number "$range_last"; then
        verdict=failed
        verdict_note="'$1' is not a range of ports"
        return
    fi
    [ "$range_first" -le "${2%% *}" ] || range_first=${2%% *}
    [ "$range_last" -ge "${2##* }" ] || range_last=${2##* }
    target_value="$range_first $range_last"
    [ "$target_value" != "$1" ] || verdict=as_wanted
}

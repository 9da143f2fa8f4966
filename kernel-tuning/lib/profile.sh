# Profiles: which settings are wanted, one `ID RELATION VALUE` per line. Relations are judged in judge.sh.

PROFILES='edge-latency edge-throughput dev'

# Puts the profile into $profile_text, refusing what cannot be understood, with its line.
load_profile() { # NAME
    profile_text=$NL
    profile_ids=
    profile_line=0
    while read -r id relation wanted; do
        profile_line=$((profile_line + 1))
        case $id in
        '' | '#'*) continue ;;
        esac
        case $relation in
        = | '>=' | '<=' | covers | one-of) [ -n "$wanted" ] || refuse_profile "$1" "$id has no value" ;;
        *) refuse_profile "$1" "$id: expected = >= <= covers or one-of, got '$relation'" ;;
        esac
        case " $profile_ids " in
        *" $id "*) refuse_profile "$1" "$id is there twice" ;;
        esac
        profile_ids="$profile_ids $id"
        profile_text="$profile_text$id $relation $wanted$NL"
    done <"$here/profiles/$1"
}

refuse_profile() { # NAME WHAT
    refuse_usage "profiles/$1:$profile_line: $2"
}

# Sets $relation and $wanted; fails if the profile leaves the setting alone.
profile_wants() { # ID
    case $profile_text in
    *"$NL$1 "*) ;;
    *) return 1 ;;
    esac
    profile_rest=${profile_text#*"$NL$1 "}
    profile_rest=${profile_rest%%"$NL"*}
    relation=${profile_rest%% *}
    wanted=${profile_rest#* }
}

# A line that no area knows would silently do nothing.
check_profile_ids() {
    for id in $profile_ids; do
        case " $known_settings " in
        *" $id "*) ;;
        *) refuse_usage "profiles/$profile names a setting that does not exist: $id" ;;
        esac
    done
}

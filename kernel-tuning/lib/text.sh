# What a person reads.

# Where the showing goes: standard output, unless that carries JSON.
show() { # FORMAT [ARGUMENT...]
    if [ -n "$as_json" ]; then
        # shellcheck disable=SC2059 # the callers' formats are literals
        printf "$@" >&2
    else
        # shellcheck disable=SC2059 # the callers' formats are literals
        printf "$@"
    fi
}

text_findings() {
    show 'profile %s, core map from %s: workers on %s, housekeeping on %s\n' "$profile" "$(core_map_words)" \
        "${worker_cores:-any core}" "${housekeeping_core:-any core}"
    ! in_container || show 'this is a container: most settings belong to its host, check and apply them there\n'
    text_area=
    text_id=
    while IFS=$FIELD read -r verdict id instance of_area kind target present wanted value relation note why effect source measured; do
        [ -n "$verdict" ] || continue
        [ "$of_area" = "$text_area" ] || show '\n%s\n' "$of_area"
        text_area=$of_area
        text_finding
    done <<END
$findings
END
    show '\n'
}

core_map_words() {
    case $core_map_origin in
    file) printf %s "$core_map_file" ;;
    router) printf %s switchboard-router ;;
    rule) printf %s 'the rule of the router (all cores but the last)' ;;
    esac
}

text_finding() {
    show '  %-9s %s\n' "$(verdict_words "$verdict")" "$id${instance:+ [$instance]}"
    [ -z "$wanted" ] || show '            present %s, wanted %s\n' "${present:-unknown}" "$wanted"
    [ -z "$note" ] || show '            note    %s\n' "$note"
    # Told once for a setting with several places.
    if [ "$id" != "$text_id" ]; then
        show '            why     %s\n            effect  %s\n            source  %s\n' "$why" "$effect" "$source"
    fi
    text_id=$id
    [ "$kind" != file ] || [ "$verdict" != differs ] || show_file "$target"
}

# A file is shown as a whole before it is written.
show_file() { # PATH
    show '            would hold:\n'
    persisted_content "$1" | while IFS= read -r text_line; do
        show '            | %s\n' "$text_line"
    done
}

verdict_words() {
    case $1 in
    as_wanted) printf %s 'as wanted' ;;
    *) printf %s "$1" ;;
    esac
}

text_summary() {
    show '%s as wanted, %s differ, %s skipped, %s advice, %s failed\n' \
        "$fitting" "$differing" "$skipping" "$advising" "$failing"
    [ $differing -eq 0 ] || [ "$command" != check ] ||
        show 'to change what differs: tune apply --profile %s (with --dry-run to see it first)\n' "$profile"
}

text_changes() {
    while IFS=$FIELD read -r outcome id instance kind target before after note; do
        [ -n "$outcome" ] || continue
        show '  %-12s %s: %s -> %s%s\n' "$(printf %s "$outcome" | tr _ ' ')" \
            "$id${instance:+ [$instance]}" "$before" "$after" "${note:+ ($note)}"
    done <<END
$changes
END
}

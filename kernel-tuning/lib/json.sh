# What a program reads; its shape is check.schema.json.

# Quotes into $json. Whatever is not printable ASCII becomes `?`, so that no byte of a host breaks the object.
json_quote() { # TEXT
    json_left=$1
    case $json_left in
    *[!\ -~]*) json_left=$(printf %s "$json_left" | tr -c ' -~' '?') ;;
    esac
    json=
    while :; do
        case $json_left in
        *[\\\"]*)
            json_head=${json_left%%[\\\"]*}
            json_left=${json_left#"$json_head"}
            json="$json$json_head\\${json_left%"${json_left#?}"}"
            json_left=${json_left#?}
            ;;
        *)
            json="\"$json$json_left\""
            return
            ;;
        esac
    done
}

json_member() { # NAME TEXT [SEPARATOR]
    json_quote "$2"
    printf '%s"%s":%s' "${3-,}" "$1" "$json"
}

json_member_or_null() { # NAME TEXT [SEPARATOR]
    if [ -n "$2" ]; then
        json_member "$@"
    else
        printf '%s"%s":null' "${3-,}" "$1"
    fi
}

json_boolean() { # NAME YES_OR_EMPTY
    [ -n "$2" ] && printf ',"%s":true' "$1" || printf ',"%s":false' "$1"
}

json_document() {
    printf '{"format":1'
    json_member command "$command"
    json_member root "${root:-/}"
    json_boolean dry_run "$dry_run"
    case $command in
    check | apply)
        json_member profile "$profile"
        json_boolean persist "$persist"
        json_boolean container "$(in_container && printf yes)"
        json_core_map
        json_findings
        json_summary
        ;;
    esac
    case $command in
    apply | revert)
        json_changes
        json_member_or_null refused "$refused"
        ;;
    esac
    printf '}\n'
}

json_core_map() {
    printf ',"core_map":{'
    json_member origin "$core_map_origin" ''
    printf ',"workers":[%s],"housekeeping":%s}' "$(printf %s "$worker_cores" | tr ' ' ,)" "${housekeeping_core:-null}"
}

json_findings() {
    printf ',"settings":['
    json_comma=
    while IFS=$FIELD read -r verdict id instance of_area kind target present wanted value relation note why effect source measured; do
        [ -n "$verdict" ] || continue
        printf '%s{' "$json_comma"
        json_comma=,
        json_member setting "$id" ''
        json_member_or_null instance "$instance"
        json_member area "$of_area"
        json_member verdict "$verdict"
        json_member_or_null target "$target"
        json_member_or_null present "$present"
        json_member_or_null wanted "$wanted"
        json_member_or_null note "$note"
        json_member why "$why"
        json_member effect "$effect"
        json_member source "$source"
        json_member measured "$measured"
        printf '}'
    done <<END
$findings
END
    printf ']'
}

json_summary() {
    printf ',"summary":{"as_wanted":%s,"differs":%s,"skipped":%s,"advice":%s,"failed":%s}' \
        "$fitting" "$differing" "$skipping" "$advising" "$failing"
}

json_changes() {
    printf ',"changes":['
    json_comma=
    while IFS=$FIELD read -r outcome id instance kind target before after note; do
        [ -n "$outcome" ] || continue
        printf '%s{' "$json_comma"
        json_comma=,
        json_member setting "$id" ''
        json_member_or_null instance "$instance"
        json_member outcome "$outcome"
        json_member target "$target"
        json_member before "$before"
        json_member after "$after"
        json_member_or_null note "$note"
        printf '}'
    done <<END
$changes
END
    printf ']'
}

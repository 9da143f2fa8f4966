# `revert`: newest change first, each target back to the bytes that were there before the first apply.

revert() {
    state=$root$state_dir
    collect_records
    if [ -z "$records" ]; then
        show 'nothing is saved in %s: nothing to revert\n' "$state"
    elif [ -n "$dry_run" ]; then
        show 'would restore:\n'
        for_each_record would_restore_one
        text_changes
    elif [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then
        refused='revert needs root'
    elif open_state; then
        trap 'interrupted=yes' HUP INT TERM
        for_each_record restore_one
        close_state
        trap - HUP INT TERM
        text_changes
    fi
    [ -z "$refused" ] || show 'not everything is restored: %s\n' "$refused"
    [ -z "$as_json" ] || json_document
    [ -z "$refused" ]
}

# Newest first.
collect_records() {
    records=
    for record in "$state"/saved/[0-9]*; do
        [ -d "$record" ] && records="$record$NL$records"
    done
}

for_each_record() { # ACTION
    while IFS= read -r record <&3; do
        [ -n "$record" ] || continue
        if ! record_is_sound "$record"; then
            present=unknown value=unknown
            change failed 'not a record of this tool, or damaged'
            refused="$record is damaged"
            continue
        fi
        if read_target "$kind" "$target" 2>/dev/null; then present=$value; else present=absent; fi
        [ "$kind" != file ] || [ ! -e "$root$target" ] || present='the written content'
        [ "$kind" != folder ] || present='the made folder'
        if [ -e "$record/before" ] && [ "$kind" != file ]; then
            read_record "$record" before
            fold_blanks "$value"
        elif [ -e "$record/before" ]; then
            value='the content before'
        else
            value=absent
        fi
        "$1"
    done 3<<END
$records
END
}

would_restore_one() {
    change would_restore ''
}

restore_one() {
    restored=$value
    if [ -n "$interrupted" ]; then
        change not_changed 'interrupted'
        refused=interrupted
    elif record_is_stale "$record"; then
        value=$restored
        change skipped 'interrupt numbers may have moved; the restart since has undone it'
        rm -rf "$record"
    elif ! target_is_there "$kind" "$target"; then
        value=$restored
        change skipped 'no longer there'
        rm -rf "$record"
    elif restore_target "$kind" "$target" "$record/before"; then
        value=$restored
        change restored ''
        rm -rf "$record"
    else
        value=$restored
        change failed 'cannot be restored; its record is kept'
        refused="$root$target cannot be written"
    fi
}

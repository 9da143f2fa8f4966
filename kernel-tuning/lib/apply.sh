# `apply`: shown first, then all or nothing. What cannot be written is found before anything is; what the
# kernel refuses nevertheless takes back what this run had changed.

# Lines of: outcome, setting, instance, kind, target, before, after, note.
changes=
# Why nothing was done; empty if it was.
refused=
interrupted=
# Records of this run, newest first, as "yes RECORD" (new) or " RECORD".
run_records=

apply() {
    text_findings
    count_findings
    text_summary
    plan=
    unit_left=
    collect_plan
    if [ -z "$plan" ]; then
        show 'nothing to change\n'
    elif [ -n "$dry_run" ]; then
        mark_plan would_change ''
        show 'would change:\n'
        text_changes
    else
        apply_plan
    fi
    [ -z "$unit_left" ] || show 'not done: the limits of %s, which only --persist writes\n' "$ROUTER_UNIT"
    [ -z "$as_json" ] || json_document
    [ -z "$refused$unit_left" ] && [ $failing -eq 0 ]
}

# What differs and can be written, as lines of: setting, instance, kind, target, present, value, relation.
collect_plan() {
    while IFS=$FIELD read -r verdict id instance of_area kind target present wanted value relation note why effect source measured; do
        [ "$verdict" = differs ] || continue
        if [ "$kind" != unit ]; then
            plan="$plan$id$FIELD$instance$FIELD$kind$FIELD$target$FIELD$present$FIELD$value$FIELD$relation$NL"
        elif [ -z "$persist" ]; then
            unit_left=yes
        fi
    done <<END
$findings
END
}

change() { # OUTCOME NOTE; the rest is the plan's current line
    changes="$changes$1$FIELD$id$FIELD$instance$FIELD$kind$FIELD$target$FIELD$present$FIELD$value$FIELD$2$NL"
}

mark_plan() { # OUTCOME NOTE
    changes=
    while IFS=$FIELD read -r id instance kind target present value relation; do
        [ -z "$id" ] || change "$1" "$2"
    done <<END
$plan
END
}

apply_plan() {
    if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then
        refused='apply needs root'
    elif check_writable && open_state; then
        trap 'interrupted=yes' HUP INT TERM
        show 'changing:\n'
        carry_out || roll_back
        close_state
        trap - HUP INT TERM
    fi
    if [ -n "$refused" ]; then
        [ -n "$changes" ] || mark_plan not_changed ''
        text_changes
        show 'nothing is changed: %s\n' "$refused"
    else
        text_changes
        show 'all done; what was there is in %s, and `tune revert` restores it\n' "$root$state_dir"
        tell_what_follows
    fi
}

check_writable() {
    while IFS=$FIELD read -r id instance kind target present value relation; do
        [ -n "$id" ] || continue
        if may_write "$kind" "$target"; then
            change not_changed ''
        else
            change failed 'cannot be written'
            refused="$root$target cannot be written (read-only, as in a container, or not allowed); --except $id leaves it out"
        fi
    done <<END
$plan
END
    [ -z "$refused" ] || return 1
    changes=
}

# Descriptor 3 carries the plan, so that nothing called here can read from it.
carry_out() {
    while IFS=$FIELD read -r id instance kind target present value relation <&3; do
        [ -n "$id" ] || continue
        plan_value=$value
        carry_out_one
        carried=$?
        value=$plan_value
        if [ $carried -ne 0 ]; then
            change failed "$refused"
            return 1
        fi
        change changed ''
    done 3<<END
$plan
END
}

carry_out_one() {
    if [ -n "$interrupted" ]; then
        refused='interrupted'
        return 1
    fi
    if [ "$kind" = file ] && ! make_parents "$target"; then
        refused="the folder of $root$target cannot be made"
        return 1
    fi
    if ! save_target "$id" "$instance" "$kind" "$target"; then
        refused="what is there cannot be saved in $state"
        return 1
    fi
    run_records="$record_is_new $record$NL$run_records"
    if ! write_target "$kind" "$target" "$plan_value" "$relation"; then
        refused="$id${instance:+ [$instance]} does not take '$plan_value'; --except $id leaves it out"
        return 1
    fi
}

# Makes the folders above a file, each with a record of its own.
make_parents() { # PATH
    parents_left=${1%/*}
    parents_missing=
    while [ -n "$parents_left" ] && [ ! -d "$root$parents_left" ]; do
        parents_missing="$parents_left $parents_missing"
        parents_left=${parents_left%/*}
    done
    for parent in $parents_missing; do
        save_target "$id" '' folder "$parent" || return 1
        run_records="$record_is_new $record$NL$run_records"
        mkdir "$root$parent" 2>/dev/null || return 1
    done
}

# Takes back what this run did, newest first: to the saved original, or, where an earlier apply saved that,
# to what was there when this run began.
roll_back() {
    roll_back_failed=
    while IFS=' ' read -r record_is_new record <&3; do
        [ -n "$record" ] || [ -n "$record_is_new" ] || continue
        roll_back_one || roll_back_failed=yes
    done 3<<END
$(printf '%s' "$run_records" | sed 's/^ /no /')
END
    if [ -n "$roll_back_failed" ]; then
        refused="$refused; and not everything could be taken back: see \`tune revert\`"
        return
    fi
    changes=$(printf '%s' "$changes" | sed "s/^changed$FIELD/rolled_back$FIELD/")$NL
}

roll_back_one() {
    record_is_sound "$record" || return 1
    if [ "$record_is_new" = yes ]; then
        restore_target "$kind" "$target" "$record/before" || return 1
        rm -rf "$record"
    else
        [ "$kind" = folder ] || restore_target "$kind" "$target" "$record/undo" || return 1
        rm -f "$record/undo" "$record/undo.absent"
    fi
}

tell_what_follows() {
    rm -f "$state"/saved/*/undo "$state"/saved/*/undo.absent
    case $changes in
    *"$FIELD$PERSIST_UNIT$FIELD"*) show 'the limits hold after: systemctl daemon-reload && systemctl restart %s\n' "$ROUTER_UNIT" ;;
    esac
    [ -n "$persist" ] || show 'this holds until the host restarts; --persist writes the files that make it last\n'
}

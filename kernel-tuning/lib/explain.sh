# `explain`: every setting with its value in each profile, as text, as JSON, or as the table of README.md.

# No figure is made up: where a setting has no run in bench-results/, this is what is said.
NOT_MEASURED='no run here shows it'
# Where `kernel-tuning/measure` shows what a setting does.
SHOWN_BY_MEASURE='bench-results/*-kernel-tuning'

explain() {
    load_explained_profiles
    explained=
    [ -z "$as_markdown" ] || markdown_head
    [ -z "$as_json" ] || printf '{"format":1,"command":"explain","settings":['
    for area in $AREAS; do
        "${area}_settings"
    done
    [ -z "$as_json" ] || printf ']}\n'
    [ -z "$only" ] || check_names "$only"
    [ -z "$except" ] || check_names "$except"
    for explained_profile in $explained_profiles; do
        profile=$explained_profile
        load_profile "$profile"
        check_profile_ids
    done
}

load_explained_profiles() {
    explained_profiles=$PROFILES
    [ -z "$profile_given" ] || explained_profiles=$profile
    for explained_profile in $explained_profiles; do
        load_profile "$explained_profile"
        case $explained_profile in
        edge-latency) text_edge_latency=$profile_text ;;
        edge-throughput) text_edge_throughput=$profile_text ;;
        dev) text_dev=$profile_text ;;
        esac
    done
}

# What a profile wants of the current setting, in $explained_value; empty: it leaves it alone.
explained_in() { # PROFILE
    case $1 in
    edge-latency) profile_text=$text_edge_latency ;;
    edge-throughput) profile_text=$text_edge_throughput ;;
    dev) profile_text=$text_dev ;;
    esac
    explained_value=
    profile_wants "$setting_id" || return 0
    case $relation in
    =) explained_value=$wanted ;;
    '>=') explained_value="at least $wanted" ;;
    '<=') explained_value="at most $wanted" ;;
    covers) explained_value="at least the range $wanted" ;;
    one-of) explained_value="one of $wanted" ;;
    esac
}

# Called by `setting` in place of an examination.
explain_setting() {
    selected "$setting_id" || return 0
    if [ -n "$as_markdown" ]; then
        explain_as_markdown
    elif [ -n "$as_json" ]; then
        explain_as_json
    else
        explain_as_text
    fi
    explained=yes
}

explain_as_text() {
    printf '%s (%s)\n' "$setting_id" "$area"
    for explained_profile in $explained_profiles; do
        explained_in "$explained_profile"
        printf '  %-16s %s\n' "$explained_profile" "${explained_value:-left alone}"
    done
    printf '  why      %s\n  effect   %s\n  source   %s\n  measured %s\n\n' "$why" "$effect" "$source" "$measured"
}

markdown_head() {
    printf '| setting |'
    printf ' %s |' $explained_profiles 'why' 'effect' 'source' 'measured'
    printf '\n|---|'
    printf '%s|' $(printf '%s\n' $explained_profiles | sed 's/.*/---/') '---' '---' '---'
    printf '\n'
}

explain_as_markdown() {
    printf '| `%s` |' "$setting_id"
    for explained_profile in $explained_profiles; do
        explained_in "$explained_profile"
        printf ' %s |' "${explained_value:--}"
    done
    printf ' %s | %s | %s | %s |\n' "$why" "$effect" "$source" "$measured"
}

explain_as_json() {
    [ -z "$explained" ] || printf ','
    printf '{'
    json_member setting "$setting_id" ''
    json_member area "$area"
    json_member why "$why"
    json_member effect "$effect"
    json_member source "$source"
    json_member measured "$measured"
    printf ',"wanted":{'
    explained_comma=
    for explained_profile in $explained_profiles; do
        explained_in "$explained_profile"
        json_member_or_null "$explained_profile" "$explained_value" "$explained_comma"
        explained_comma=,
    done
    printf '}}'
}

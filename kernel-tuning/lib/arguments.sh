# The command line: everything is checked here, before the host is looked at.

command=check
profile=
profile_given=
dry_run=
as_json=
as_markdown=
persist=
root=
root_given=
core_map_file=
state_dir=/var/lib/switchboard-tuning
only=
except=
interfaces=

usage() {
    cat <<'END'
usage: tune [check|apply|revert|explain] [flags]

  check     compare the host with a profile; the default; changes nothing
  apply     show each change, save what is there, then change it; all or nothing
  revert    restore exactly what was there before the first apply
  explain   tell what each setting is for, with its source and its value in each profile

  --profile NAME        edge-latency, edge-throughput or dev; check takes edge-latency if none is named
  --dry-run             apply, revert: show what would be done, and do nothing
  --persist             also look at (check) or write (apply) the files that hold after a restart:
                        sysctl.d, tmpfiles.d, udev rules, a drop-in of switchboard-router.service
  --only NAMES          only these settings or areas, separated by commas
  --except NAMES        all but these settings or areas
  --interface NAMES     only these network interfaces; else all that are up and have a device
  --core-map FILE       what `switchboard-router --print-core-map=json` printed; else the router in
                        PATH is asked; else its rule is used: all cores but the last are workers
  --state-dir DIR       where apply saves what was there; default /var/lib/switchboard-tuning
  --root DIR            take this folder for `/`; for tests and images
  --json                one JSON object on standard output (check.schema.json); the showing that
                        precedes a change goes to standard error
  --markdown            explain: the table of README.md
  --help                this text

Exit code: 0 all is as wanted (check), was done (apply, revert) or would be done (--dry-run);
1 something differs, or could not be done; 2 wrong usage. Advice does not change the exit code.
Boot parameters are printed as advice and never written.
END
}

# Says what is wrong with the command line, and ends with 2.
refuse_usage() {
    printf 'tune: %s\n' "$1" >&2
    printf 'tune: see `tune --help`\n' >&2
    exit 2
}

read_arguments() {
    case ${1-} in
    check | apply | revert | explain)
        command=$1
        shift
        ;;
    esac
    while [ $# -gt 0 ]; do
        case $1 in
        --help)
            usage
            exit 0
            ;;
        --dry-run) dry_run=yes ;;
        --json) as_json=yes ;;
        --markdown) as_markdown=yes ;;
        --persist) persist=yes ;;
        --profile=* | --root=* | --core-map=* | --state-dir=* | --only=* | --except=* | --interface=*)
            take_value "${1%%=*}" "${1#*=}"
            ;;
        --profile | --root | --core-map | --state-dir | --only | --except | --interface)
            [ $# -ge 2 ] || refuse_usage "$1 needs a value"
            take_value "$1" "$2"
            shift
            ;;
        --*) refuse_usage "unknown flag $1" ;;
        *) refuse_usage "unexpected word $1" ;;
        esac
        shift
    done
    check_arguments
}

take_value() {
    [ -n "$2" ] || refuse_usage "$1 needs a value"
    case $1 in
    --profile)
        profile=$2
        profile_given=yes
        ;;
    --root)
        root=$2
        root_given=yes
        ;;
    --core-map) core_map_file=$2 ;;
    --state-dir) state_dir=$2 ;;
    --only) only=$2 ;;
    --except) except=$2 ;;
    --interface) interfaces=$2 ;;
    esac
}

check_arguments() {
    if [ -n "$root" ]; then
        root=$(cd "$root" 2>/dev/null && pwd) || refuse_usage '--root is not a folder that can be entered'
        [ "$root" != / ] || root=
    fi
    case $state_dir in
    *[!A-Za-z0-9/._-]* | */../* | */..) refuse_usage '--state-dir is a path of letters, digits, and / . _ -' ;;
    /?*) state_dir=${state_dir%/} ;;
    *) refuse_usage '--state-dir is an absolute path' ;;
    esac
    case $profile in
    *[!a-z-]*) refuse_usage "no profile $profile" ;;
    esac
    [ -z "$profile" ] || [ -f "$here/profiles/$profile" ] || refuse_usage "no profile $profile"
    [ -z "$as_markdown" ] || [ "$command" = explain ] || refuse_usage '--markdown is for explain'
    [ -z "$as_markdown" ] || [ -z "$as_json" ] || refuse_usage '--markdown and --json exclude each other'
    check_arguments_of_command
    [ -n "$profile" ] || profile=edge-latency
}

check_arguments_of_command() {
    case $command in
    check)
        [ -z "$dry_run" ] || refuse_usage 'check changes nothing: --dry-run is for apply and revert'
        ;;
    apply)
        # Changing a host is deliberate: no profile is guessed.
        [ -n "$profile_given" ] || refuse_usage 'apply needs --profile'
        ;;
    revert)
        [ -z "$only$except$interfaces$persist$core_map_file" ] ||
            refuse_usage 'revert restores all that apply saved; of the choosing flags it takes none'
        ;;
    explain)
        [ -z "$dry_run$persist$root_given$interfaces$core_map_file" ] ||
            refuse_usage 'explain does not look at the host'
        ;;
    esac
}

# Whether --only and --except leave this setting in.
selected() { # ID; the area is $area
    if [ -n "$only" ]; then
        named_in "$only" "$1" || named_in "$only" "$area" || return 1
    fi
    if [ -n "$except" ]; then
        ! named_in "$except" "$1" && ! named_in "$except" "$area" || return 1
    fi
}

named_in() { # LIST NAME
    case ,$1, in
    *,"$2",*) return 0 ;;
    *) return 1 ;;
    esac
}

# A misspelt name in --only would silently check nothing.
check_names() { # LIST
    names_left=$1,
    while [ -n "$names_left" ]; do
        name=${names_left%%,*}
        names_left=${names_left#*,}
        case " $known_settings $AREAS " in
        *" $name "*) ;;
        *) refuse_usage "no setting or area $name" ;;
        esac
    done
}

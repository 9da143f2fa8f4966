# Which core does what in the router, as `switchboard-router --print-core-map=json` says it:
# {"workers":[{"worker":0,"core":0}],"housekeeping":1,"pinning":"pinned"}

# A core map of 8192 workers is below 256 KiB.
CORE_MAP_BYTES_MAX=262144

# Sets $worker_cores ("0 1 2"; empty if the router is not pinned), $worker_count, $housekeeping_core
# (may be empty) and $core_map_origin.
load_core_map() {
    if [ -n "$core_map_file" ]; then
        [ -f "$core_map_file" ] || refuse_usage "--core-map: no file $core_map_file"
        core_map_origin=file
        read_core_map "$(dd if="$core_map_file" bs=$CORE_MAP_BYTES_MAX count=1 2>/dev/null)" ||
            refuse_usage "--core-map: $core_map_file is not what \`switchboard-router --print-core-map=json\` prints"
    elif [ -z "$root" ] && command -v switchboard-router >/dev/null 2>&1 &&
        read_core_map "$(switchboard-router --print-core-map=json 2>/dev/null)"; then
        core_map_origin=router
    else
        core_map_origin=rule
        core_map_by_rule
    fi
    # shellcheck disable=SC2086 # counting words
    set -- $worker_cores
    worker_count=$#
}

read_core_map() { # JSON
    core_map_text=$(printf '%s' "$1" | tr -d ' \t\r\n')
    case $core_map_text in
    '{'*'"workers":['*'}'*'],'*'"housekeeping":'*'}') ;;
    *) return 1 ;;
    esac
    worker_cores=
    core_map_pinned=yes
    core_map_left=${core_map_text#*'"workers":['}
    core_map_left=${core_map_left%%]*}
    while :; do
        case $core_map_left in
        *'"core":'*) core_map_left=${core_map_left#*'"core":'} ;;
        *) break ;;
        esac
        core_map_core=${core_map_left%%[!0-9]*}
        case $core_map_left in
        null*) core_map_pinned= ;;
        *)
            is_core "$core_map_core" || return 1
            worker_cores="$worker_cores${worker_cores:+ }$core_map_core"
            ;;
        esac
    done
    [ -n "$core_map_pinned" ] || worker_cores=
    [ -n "$worker_cores" ] || [ -z "$core_map_pinned" ] || return 1
    housekeeping_core=${core_map_text#*'"housekeeping":'}
    housekeeping_core=${housekeeping_core%%[,\}]*}
    [ "$housekeeping_core" != null ] || housekeeping_core=
    [ -z "$housekeeping_core" ] || is_core "$housekeeping_core"
}

# The router's default: a worker on each core but the last; on one core they share it.
core_map_by_rule() {
    worker_cores=
    housekeeping_core=
    read_value /sys/devices/system/cpu/online && read_core_list "$value" || return 0
    housekeeping_core=${cores##* }
    worker_cores=${cores% *}
}

# The core of the worker that serves this queue, in $core: queues go round the workers.
core_of_queue() { # QUEUE
    core_place=$(($1 % worker_count))
    for core in $worker_cores; do
        [ $core_place -gt 0 ] || return 0
        core_place=$((core_place - 1))
    done
}

# The mask of all workers that share this queue, of so many, in $mask. With more queues than workers,
# several queues go to the same worker.
mask_of_queue() { # QUEUE QUEUES
    queue_cores=
    queue_worker=0
    for queue_core in $worker_cores; do
        if [ $((queue_worker % $2)) -eq $(($1 % worker_count)) ]; then
            queue_cores="$queue_cores $queue_core"
        fi
        queue_worker=$((queue_worker + 1))
    done
    # shellcheck disable=SC2086 # one word per core
    mask_of $queue_cores
}

#!/usr/bin/env bash
# A real Apache Kafka for tests: one broker in KRaft mode on 127.0.0.1, with nothing outside of FOLDER.
#
# usage: tests/kafka.sh jars           bring the broker's jars into tests/.cache, once (needs Java and Maven)
#        tests/kafka.sh start FOLDER   start, and print HOST:PORT as soon as it serves; where it runs, only print
#        tests/kafka.sh stop FOLDER    end it (SIGTERM; what stays after a minute is killed)
#        tests/kafka.sh kill FOLDER    end it at once, as a crash would (SIGKILL)
#
# FOLDER is made where it is missing; it keeps port, topics and log (broker.log), so that a later start
# goes on where the last one ended. Exit codes: 0 done, 1 failed, 3 cannot be had here (the reason is printed).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
jars=$here/.cache/kafka-jars
start_seconds_max=120
stop_seconds_max=60

say() { printf 'kafka: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
cannot_be_had() { say "cannot be had here: $*"; exit 3; }
have() { command -v "$1" >/dev/null 2>&1; }

usage() {
    sed -n 's/^# usage: /usage: /p; s/^#        tests/       tests/p' "$0" >&2
    exit 1
}

# --- Jars -------------------------------------------------------------------------------------

# Two test runs may come here at once: the second waits for the first, then finds everything done.
bring_jars() {
    have java || cannot_be_had "there is no Java; 'make setup' installs it"
    mkdir -p "$here/.cache"
    exec {lock}>"$here/.cache/kafka-jars.lock"
    flock "$lock"
    local stamp
    stamp=$(sha256sum <"$here/kafka/pom.xml")
    if [ "$(cat "$jars/stamp" 2>/dev/null)" != "$stamp" ]; then
        have mvn || cannot_be_had "there is no Maven; 'make setup' installs it"
        say "bringing Apache Kafka's jars into tests/.cache"
        rm -rf "$jars"
        mvn --batch-mode --quiet --file "$here/kafka/pom.xml" dependency:copy-dependencies \
            -DincludeScope=runtime -DoutputDirectory="$jars" </dev/null >"$here/.cache/kafka-jars.log" 2>&1 ||
            cannot_be_had "Maven could not bring the jars; see tests/.cache/kafka-jars.log"
        printf '%s\n' "$stamp" >"$jars/stamp" # last: an interrupted run starts over
    fi
    exec {lock}>&-
}

# --- Broker -----------------------------------------------------------------------------------

# Below the range that Linux hands to outgoing connections, as in tests/e2e/harness/ports.py.
two_free_ports() {
    python3 - <<'PYTHON'
import random, socket

held = []
while len(held) < 2:
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
    except OSError:
        continue
    held.append(one)
print(*(one.getsockname()[1] for one in held))
PYTHON
}

# Sized for a test host: few threads and partitions, and no wait for further members of a new group. A broker
# that was killed is only taken back when its old session has ended, so sessions are short.
write_properties() {
    local port controller_port
    read -r port controller_port < <(two_free_ports)
    printf '127.0.0.1:%s\n' "$port" >"$folder/address"
    cat >"$folder/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller_port
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=$folder/data
auto.create.topics.enable=true
num.partitions=2
num.network.threads=2
num.io.threads=2
background.threads=2
log.cleaner.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
PROPERTIES
}

# 16 bytes in URL-safe base64. The first is fixed, since an id that began with '-' would be taken for an option.
new_cluster_id() { { printf k && head -c 15 /dev/urandom; } | base64 | tr '+/' '-_' | tr -d '='; }

# Quick to start rather than fast at the end: the first compiler only, one collector thread.
java_with_kafka() {
    exec java -Xms192m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info \
        -cp "$jars/*" "$@"
}

# The process, where it is ours and lives: a number alone may have gone to somebody else since.
running_pid() {
    local pid
    pid=$(cat "$folder/pid" 2>/dev/null) && [ -n "$pid" ] || return 1
    tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -Fxq "$folder/server.properties" || return 1
    printf '%s\n' "$pid"
}

start() {
    if running_pid >/dev/null; then
        cat "$folder/address"
        return
    fi
    bring_jars
    [ -e "$folder/server.properties" ] || write_properties
    if [ ! -e "$folder/data/meta.properties" ]; then
        (java_with_kafka kafka.tools.StorageTool format --config "$folder/server.properties" \
            --cluster-id "$(new_cluster_id)") \
            </dev/null >"$folder/format.log" 2>&1 || die "cannot format: $(cat "$folder/format.log")"
    fi
    : >"$folder/broker.log"
    # In a session of its own, so that a terminal's Ctrl-C does not end it before whoever uses it.
    (
        cd "$folder"
        export -f java_with_kafka
        export jars
        exec setsid bash -c 'java_with_kafka "$@"' kafka kafka.Kafka "$folder/server.properties" \
            </dev/null >"$folder/broker.log" 2>&1
    ) &
    local pid=$! seconds
    printf '%s\n' "$pid" >"$folder/pid"
    for ((seconds = 0; seconds < start_seconds_max * 10; seconds++)); do
        if grep -q 'Kafka Server started' "$folder/broker.log"; then
            cat "$folder/address"
            return
        fi
        kill -0 "$pid" 2>/dev/null || die "the broker ended as it started: $(tail -n 20 "$folder/broker.log")"
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    die "the broker did not start within $start_seconds_max s: $(tail -n 20 "$folder/broker.log")"
}

# $1: the first signal.
end() {
    local pid tenths
    pid=$(running_pid) || return 0
    kill "-$1" "$pid"
    for ((tenths = 0; tenths < stop_seconds_max * 10; tenths++)); do
        running_pid >/dev/null || return 0
        sleep 0.1
    done
    say "the broker did not end within $stop_seconds_max s; killing it"
    kill -KILL "$pid"
}

command=${1:-}
case "$command" in
    jars) [ $# -eq 1 ] || usage ;;
    start | stop | kill)
        [ $# -eq 2 ] || usage
        mkdir -p "$2"
        folder=$(cd "$2" && pwd)
        ;;
    *) usage ;;
esac
case "$command" in
    jars) bring_jars ;;
    start) start ;;
    stop) end TERM ;;
    kill) end KILL ;;
esac

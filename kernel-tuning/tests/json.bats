#!/usr/bin/env bats
# What a program reads is valid against check.schema.json, whatever happens.

load fixture

setup() {
    command -v python3 >/dev/null || skip 'needs python3'
}

valid() {
    python3 "$BATS_TEST_DIRNAME/validate.py"
}

@test "check is valid on each root and with each profile" {
    debian_root
    for profile in edge-latency edge-throughput dev; do
        tune check --profile $profile --persist --json --root "$ROOT" | valid
    done
    rhel_root
    for profile in edge-latency edge-throughput dev; do
        tune check --profile $profile --json --root "$ROOT" | valid
    done
}

@test "check is valid on this host" {
    tune check --json | valid
}

@test "apply and revert are valid, done or dry" {
    rhel_root
    tune apply --profile edge-latency --persist --dry-run --json --root "$ROOT" 2>/dev/null | valid
    tune apply --profile edge-latency --persist --json --root "$ROOT" 2>/dev/null >"$BATS_TEST_TMPDIR/json"
    valid <"$BATS_TEST_TMPDIR/json"
    [ "$(json "set(c['outcome'] for c in it['changes'])" <"$BATS_TEST_TMPDIR/json")" = "{'changed'}" ]
    tune revert --dry-run --json --root "$ROOT" 2>/dev/null | valid
    tune revert --json --root "$ROOT" 2>/dev/null >"$BATS_TEST_TMPDIR/json"
    valid <"$BATS_TEST_TMPDIR/json"
    [ "$(json "set(c['outcome'] for c in it['changes'])" <"$BATS_TEST_TMPDIR/json")" = "{'restored'}" ]
}

@test "a refused apply is valid and says why" {
    rhel_root
    put card/refuses ''
    tune apply --profile edge-latency --json --root "$ROOT" 2>/dev/null >"$BATS_TEST_TMPDIR/json" || true
    valid <"$BATS_TEST_TMPDIR/json"
    [ "$(json "it['refused']" <"$BATS_TEST_TMPDIR/json")" = "nic.ring_rx [eno1] does not take '1024'; --except nic.ring_rx leaves it out" ]
    [ "$(json "sorted(set(c['outcome'] for c in it['changes']))" <"$BATS_TEST_TMPDIR/json")" = "['failed', 'rolled_back']" ]
}

@test "under --json the showing goes to standard error" {
    debian_root
    run -0 --separate-stderr tune apply --profile edge-latency --only vm.swappiness --json --root "$ROOT"
    [ "${#lines[@]}" -eq 1 ]
    [[ $stderr == *'present 60, wanted at most 10'* ]]
}

@test "explain is valid" {
    tune explain --json | valid
    tune explain --json --profile dev --only limits | valid
}

@test "bytes that are no text do not break the object" {
    debian_root
    printf '6\377\001"\\0\n' >"$ROOT/proc/sys/vm/swappiness"
    tune check --only vm.swappiness --json --root "$ROOT" >"$BATS_TEST_TMPDIR/json" || true
    valid <"$BATS_TEST_TMPDIR/json"
    [ "$(json "it['settings'][0]['present']" <"$BATS_TEST_TMPDIR/json")" = '6??"\0' ]
}

@test "the schema refuses what is not its own" {
    for wrong in '{}' '{"format":2,"command":"explain","settings":[]}' '{"format":1,"command":"check","settings":[]}' \
        '{"format":1,"command":"explain","settings":[],"more":1}'; do
        run -1 valid <<<"$wrong"
    done
    valid <<<'{"format":1,"command":"explain","settings":[]}'
}

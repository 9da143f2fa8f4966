#!/usr/bin/env bats
# The command line: what is wrong ends with 2 and touches nothing.

load fixture

refused() { # ARGUMENT...
    run -2 tune "$@"
    [[ $output == 'tune: '* ]]
}

@test "an unknown flag, word, profile or value is refused" {
    refused --frobnicate
    refused check --frobnicate
    refused tidy
    refused check extra
    refused check --profile
    refused check --profile=
    refused check --profile nosuch
    refused check --profile ../dev
    refused check --root /no/such/folder
    refused check --core-map /no/such/file
    refused apply --profile dev --state-dir relative
    refused apply --profile dev --state-dir /a/../b
}

@test "flags that contradict the command are refused" {
    refused apply
    refused check --dry-run
    refused check --markdown
    refused revert --only network
    refused explain --root /
    refused explain --json --markdown
}

@test "a misspelt setting in --only or --except is refused" {
    debian_root
    refused check --root "$ROOT" --only vm.swapiness
    refused check --root "$ROOT" --except netwrok
    refused explain --only nosuch
}

@test "what is no core map is refused" {
    debian_root
    for wrong in '' '{}' 'worker 0 core 0' '{"workers":[],"housekeeping":1,"pinning":"pinned"}' \
        '{"workers":[{"worker":0,"core":-1}],"housekeeping":1,"pinning":"pinned"}' \
        '{"workers":[{"worker":0,"core":99999}],"housekeeping":1,"pinning":"pinned"}' \
        '{"workers":[{"worker":0,"core":0}],"housekeeping":$(id),"pinning":"pinned"}'; do
        put map.json "$wrong"
        refused check --root "$ROOT" --core-map "$ROOT/map.json"
    done
}

@test "a wrong profile is refused with its file and line" {
    cp -r "$TUNING" "$BATS_TEST_TMPDIR/copy"
    TUNING=$BATS_TEST_TMPDIR/copy
    debian_root
    for wrong in 'no.such.setting = 1' 'vm.swappiness ~ 1' 'vm.swappiness =' 'net.core.somaxconn >= 1'; do
        cp "$BATS_TEST_DIRNAME/../profiles/dev" "$TUNING/profiles/dev"
        printf '%s\n' "$wrong" >>"$TUNING/profiles/dev"
        refused check --profile dev --root "$ROOT"
        [[ $output == *profiles/dev* ]]
    done
}

@test "--help ends with 0 and tells the exit codes" {
    run -0 tune --help
    [[ $output == *'Exit code: 0'* ]]
}

@test "it can be called through a symbolic link from another folder" {
    debian_root
    ln -s "$TUNING/tune" "$BATS_TEST_TMPDIR/tune"
    cd /
    run -0 "$BATS_TEST_TMPDIR/tune" explain --only vm.swappiness
}

@test "the router's own core map is understood" {
    debian_root
    # As switchboard-router --print-core-map=json prints it.
    put map.json '{"workers":[{"worker":0,"core":0},{"worker":1,"core":1}],"housekeeping":2,"pinning":"pinned"}'
    run tune check --root "$ROOT" --core-map "$ROOT/map.json" --json
    [ "$(json "it['core_map']" <<<"$output")" = "{'origin': 'file', 'workers': [0, 1], 'housekeeping': 2}" ]
}

@test "the table of README.md is what explain prints" {
    diff <(sed -n '/^| setting |/,/^$/p' "$TUNING/README.md" | sed '/^$/d') <(tune explain --markdown)
}

@test "every setting has a value in some profile, and tells whether a result shows what it does" {
    run -0 tune explain --json
    [ "$(json "[s['setting'] for s in it['settings'] if not any(s['wanted'].values())]" <<<"$output")" = '[]' ]
    [ "$(json "sorted(set(s['measured'] for s in it['settings']))" <<<"$output")" = "['bench-results/*-kernel-tuning', 'no run here shows it']" ]
    compgen -G "$BATS_TEST_DIRNAME/../../bench-results/*-kernel-tuning/measurements.json"
}

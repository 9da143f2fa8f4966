#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH seconds (default 60), or only those named after it.
#
#   fuzz/run.sh [SECONDS_EACH [TARGET...]]
#
# A find is written to fuzz/artifacts/TARGET/ and ends the run with exit code 1.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-60}
shift || true

if ! rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    echo "fuzzing needs a nightly toolchain: rustup toolchain install nightly --profile minimal" >&2
    exit 2
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzzing needs cargo-fuzz: cargo install cargo-fuzz --locked" >&2
    exit 2
fi

cp ../Cargo.lock Cargo.lock # the versions that are tested, not the newest

cargo run --quiet --package switchboard-fuzz-seeds -- corpus
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(cargo +nightly fuzz list --fuzz-dir .)
fi
for target in "${targets[@]}"; do
    echo "== $target: $seconds s"
    cargo +nightly fuzz run --fuzz-dir . "$target" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=20000 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0
done

#!/usr/bin/env bash
# Measures how fast one process catches up with a full topic: catch-up.sh [EVENTS]     (default 1000000)
# Needs a built binary (scripts/test.sh). Everything runs on loopback and is ended and removed afterwards.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

events="${1:-1000000}"
tallyflow="${TALLYFLOW_BIN:-$CARGO_TARGET_DIR/debug/tallyflow}"
[ -x "$tallyflow" ] || die "$tallyflow does not exist: run scripts/test.sh first"
work=$(mktemp -d "${TMPDIR:-/tmp}/tallyflow-catch-up.XXXXXX")
pid=
cleanup() {
  [ -z "$pid" ] || { kill -KILL "$pid"; wait "$pid"; } 2>/dev/null || true
  "$TF_ROOT/scripts/kafka.sh" stop "$work/kafka" || true
  rm -rf "$work"
}
trap cleanup EXIT

brokers=$("$TF_ROOT/scripts/kafka.sh" start "$work/kafka")
cd "$work"
cat >topology.toml <<TOML
app = "bench"
[kafka]
brokers = "$brokers"
[input.events]
[input.events.format.json]
[stage.intake]
from = ["events"]
[stage.count]
partitions = 4
[stage.count.window.minute]
size = "1m"
TOML
"$tallyflow" topics --execute >/dev/null 2>&1
now=$(date +%s)
awk -v n="$events" -v now="$now" 'BEGIN { srand(1); for (i = 0; i < n; i++)
  printf "{\"event_id\":\"e%d\",\"counter\":\"counter-%d\",\"event_time\":%d000}\n", i, int(rand() * 10000), now - int(rand() * 60) }' |
  "$tallyflow" send - 2>/dev/null
started=$(date +%s.%N)
"$tallyflow" run >run.log 2>&1 &
pid=$!
"$tallyflow" healthcheck --wait --settled --timeout 300s >/dev/null
ended=$(date +%s.%N)
ticks=$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat")
outcome=$("$tallyflow" audit --timeout 300s | tail -n 1)
awk -v n="$events" -v a="$started" -v b="$ended" -v t="$ticks" -v hz="$(getconf CLK_TCK)" -v o="$outcome" 'BEGIN {
  printf "| %d | %.1f s | %d | %.1f s | %.2f | %s |\n", n, b - a, n / (b - a), t / hz, t / hz * 1e6 / n, o }'

#!/usr/bin/env bash
# Builds, checks and tests.
#   scripts/test.sh                 every check and every test that is not marked long
#   scripts/test.sh --full          the long ones too
#   scripts/test.sh [--full] NAME…  builds and runs only the tests whose names contain a NAME
# Formatting, lints, dependencies, documentation tests and the commands of README.md are looked at first and a failure
# there is reported at the end: the tests always run. Nothing is left behind but the cache ($TALLYFLOW_CACHE).
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

full=
declare -a names=()
for argument in "$@"; do
  case "$argument" in
    --full) full=yes ;;
    -*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) names+=("$argument") ;;
  esac
done

cd "$TF_ROOT"
mkdir -p "$CARGO_TARGET_DIR"
# Two runs would overwrite each other's binary while tests run it. Whoever comes second is told so and ends.
exec 9>"$CARGO_TARGET_DIR/test.lock"
flock -n 9 || die "another run is using $CARGO_TARGET_DIR: wait for it, or set TALLYFLOW_CACHE to another folder"

work=$(mktemp -d "${TMPDIR:-/tmp}/tallyflow-run.XXXXXX")
mark="TALLYFLOW_TEST_RUN=$work"
cleanup() {
  end_marked "$mark"
  if [ -d "$work/kafka" ]; then
    scripts/kafka.sh stop "$work/kafka" || true
    cp "$work/kafka/log" "$CARGO_TARGET_DIR/test-kafka.log" 2>/dev/null || true # of the last run, for a post-mortem
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

declare -a failed=()
step() { # WHAT COMMAND…: goes on after a failure and remembers it
  local what="$1"
  shift
  say "$what"
  "$@" 9>&- || failed+=("$what")
}

build() {
  # The first build takes about 30 minutes of CPU time, because RocksDB and librdkafka are compiled from source.
  [ -x "$CARGO_TARGET_DIR/debug/tallyflow" ] ||
    say "build: the first one takes about 30 CPU minutes, since RocksDB and librdkafka are compiled from source"
  say "build"
  cargo build --locked --workspace --bins --tests 9>&-
  export TALLYFLOW_BIN="$CARGO_TARGET_DIR/debug/tallyflow"
}

dependencies() {
  cargo fetch --locked --quiet && # those of other platforms are judged too
    cargo deny --offline --locked --log-level error check --hide-inclusion-graph -A duplicate licenses bans sources
}

documentation_tests() { # one line for each crate that has some
  cargo test --locked --workspace --doc --quiet >"$work/doc.log" 2>&1 || { cat "$work/doc.log"; return 1; }
  grep '^test result' "$work/doc.log" | grep -v ' 0 passed; 0 failed' || true
}

start_kafka() {
  say "start Apache Kafka"
  TALLYFLOW_TEST_BROKERS=$(scripts/kafka.sh start "$work/kafka" 9>&-)
  export TALLYFLOW_TEST_BROKERS
  export TALLYFLOW_TEST_KAFKA_DIR="$work/kafka"
}

run_tests() {
  local -a options=(--locked --workspace)
  [ -z "$full" ] || options+=(--run-ignored all)
  [ ${#names[@]} -eq 0 ] || options+=("${names[@]}")
  mkdir -p "$work/tmp"
  env "$mark" "TMPDIR=$work/tmp" cargo nextest run "${options[@]}" 9>&-
}

setup
if [ ${#names[@]} -eq 0 ]; then
  step "formatting" cargo fmt --all --check
  step "dependencies" dependencies
  build
  step "lints" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
else
  build
fi
start_kafka
if [ ${#names[@]} -eq 0 ]; then
  step "documentation tests" documentation_tests
  [ ! -e README.md ] || step "commands of README.md" scripts/readme.sh
fi

say "tests"
status=0
run_tests || status=$?
if [ ${#failed[@]} -gt 0 ]; then
  printf '== failed:%s\n' "$(printf ' %s;' "${failed[@]}")" >&2
  [ "$status" != 0 ] || status=1
fi
exit "$status"

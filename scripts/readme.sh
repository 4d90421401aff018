#!/usr/bin/env bash
# Runs the commands of a document, so that what it tells the reader to type works.
#   scripts/readme.sh [FILE]      default: README.md; a block to run begins with ```sh ci
# All marked blocks run in order in one bash with `set -euo pipefail`, in a throw-away copy of the repository with
# `tallyflow` in the PATH. localhost:9092 and 127.0.0.1:9092 stand for the reader's broker: they are replaced by
# $TALLYFLOW_TEST_BROKERS, in the blocks and in the copy's .toml files; without that variable a broker is started for it.
# What the blocks leave running is ended. $TALLYFLOW_README_SECONDS (default 900) bounds the whole.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

document="${1:-$TF_ROOT/README.md}"
[ -f "$document" ] || die "$document does not exist"
work=$(mktemp -d "${TMPDIR:-/tmp}/tallyflow-readme.XXXXXX")
mark="TALLYFLOW_README_RUN=$work"
broker_started=

cleanup() {
  end_marked "$mark"
  [ -z "$broker_started" ] || "$TF_ROOT/scripts/kafka.sh" stop "$work/kafka" || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The marked blocks as one script. A fence in a list is indented: that much indentation is taken off its lines too.
extract() { # DOCUMENT
  awk -v name="$(basename "$1")" '
    !inside && match($0, /^[ \t]*```+[ \t]*/) {
      fence = substr($0, 1, RLENGTH); info = substr($0, RLENGTH + 1)
      indent = match(fence, /`/) - 1; ticks = fence; gsub(/[ \t]/, "", ticks)
      sub(/[ \t]+$/, "", info)
      inside = 1; marked = (info ~ /^sh[ \t]+ci$/)
      if (marked) printf "tallyflow_readme_place=%s:%d\n", name, NR
      next
    }
    inside {
      text = $0; sub(/^[ \t]+/, "", text); sub(/[ \t]+$/, "", text)
      if (text ~ /^`+$/ && length(text) >= length(ticks)) { inside = 0; next }
      if (marked) {
        line = $0
        for (i = 0; i < indent && line ~ /^[ \t]/; i++) line = substr(line, 2)
        print line
      }
    }
    END { if (inside) { printf "%s ends inside a block\n", name > "/dev/stderr"; exit 1 } }
  ' "$1"
}

extract "$document" >"$work/blocks" || die "the blocks of $document cannot be read"
if ! grep -q '^tallyflow_readme_place=' "$work/blocks"; then
  say "no commands to run in $(basename "$document")"
  exit 0
fi

if [ -z "${TALLYFLOW_TEST_BROKERS:-}" ]; then
  broker_started=yes
  TALLYFLOW_TEST_BROKERS=$("$TF_ROOT/scripts/kafka.sh" start "$work/kafka")
fi
replace="s/(localhost|127\\.0\\.0\\.1):9092/$TALLYFLOW_TEST_BROKERS/g"

mkdir "$work/repository"
tar -C "$TF_ROOT" --exclude=./.git --exclude=./target --exclude=./state -cf - . | tar -C "$work/repository" -xf -
find "$work/repository" -name '*.toml' -exec sed -E -i "$replace" {} +

{
  echo 'set -Eeuo pipefail'
  # shellcheck disable=SC2016
  echo 'trap '\''echo "failed: the block at $tallyflow_readme_place: $BASH_COMMAND" >&2'\'' ERR'
  sed -E "$replace" "$work/blocks"
} >"$work/script"

binary="${TALLYFLOW_BIN:-$CARGO_TARGET_DIR/debug/tallyflow}"
cd "$work/repository"
status=0
env "$mark" "PATH=$(dirname "$binary"):$PATH" NO_COLOR=1 \
  timeout --kill-after=10 "${TALLYFLOW_README_SECONDS:-900}" bash "$work/script" </dev/null || status=$?
cd "$TF_ROOT"
case "$status" in
  0) say "the commands of $(basename "$document") work" ;;
  124) die "the commands of $(basename "$document") did not end in ${TALLYFLOW_README_SECONDS:-900} s" ;;
  *) die "the commands of $(basename "$document") fail with exit code $status" ;;
esac

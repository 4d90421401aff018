# shellcheck shell=bash disable=SC2034
# What the scripts here share: where things are kept, how processes are started, watched and ended. Source it.
# Loading it sets variables and defines functions, nothing more.
set -euo pipefail

TF_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
[ -n "${HOME:-}" ] || { HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"; export HOME; }

# Everything that is fetched or compiled lives here and may be deleted at any time.
export TALLYFLOW_CACHE="${TALLYFLOW_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tallyflow}"
# Outside the working copy: the native libraries are compiled once for all clones.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$TALLYFLOW_CACHE/target}"

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# A free TCP port on loopback, with the next one free too. Below the ephemeral range (32768 and up), so that an
# outgoing connection cannot sit on it.
free_port() {
  local port
  for _ in $(seq 200); do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    port_open "$port" || port_open $((port + 1)) || { echo "$port"; return; }
  done
  die "no free port between 20000 and 32000"
}
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A process is remembered as "PID START_TIME": a pid alone may have been given to somebody else meanwhile.
proc_stat() { # PID -> the fields of /proc/PID/stat after the name, state first
  local line
  line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  echo "${line##*) }"
}
proc_record() { # PID FILE
  local -a stat
  read -r -a stat <<<"$(proc_stat "$1")" || true
  echo "$1 ${stat[19]:-gone}" >"$2"
}
# Where nobody reaps orphans an ended process stays as a zombie and `kill -0` still finds it. It is over when it is a
# zombie with a single thread left: while other threads are being torn down they keep its ports.
proc_alive() { # FILE
  local pid start
  local -a stat
  read -r pid start 2>/dev/null <"$1" || return 1
  read -r -a stat <<<"$(proc_stat "$pid")" || return 1
  [ "${stat[19]:-}" = "$start" ] || return 1
  [ "${stat[0]}" != Z ] || [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -gt 1 ]
}
proc_pid() { cut -d' ' -f1 "$1"; } # FILE
proc_end() { # FILE SIGNAL GRACE_SECONDS: signals, waits, kills after the grace time; harmless when it is over already
  local file="$1" signal="$2" deadline=$((SECONDS + $3))
  if proc_alive "$file"; then
    kill "-$signal" "$(proc_pid "$file")" 2>/dev/null || true
    kill -CONT "$(proc_pid "$file")" 2>/dev/null || true # a paused one would never see the signal
    while proc_alive "$file"; do
      if [ "$SECONDS" -ge "$deadline" ]; then
        kill -KILL "$(proc_pid "$file")" 2>/dev/null || true
        deadline=$((SECONDS + 5))
      fi
      sleep 0.05
    done
  fi
  rm -f "$file"
}

# Ends every process that inherited NAME=VALUE in its environment, except this script itself: what a killed test left.
end_marked() { # NAME=VALUE
  local environ pid
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/}; pid=${pid%/environ}
    [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] || continue
    if grep -qzxF "$1" "$environ" 2>/dev/null; then kill -KILL "$pid" 2>/dev/null || true; fi
  done
}

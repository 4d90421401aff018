#!/usr/bin/env bash
# One Apache Kafka broker (KRaft, plaintext, loopback only) as an ordinary process.
#   kafka.sh fetch                  jars, formatted storage and class-data archive into the cache folder, once
#   kafka.sh start DIR [PORT]       waits until it serves; the address is in DIR/address; a running one is left alone
#   kafka.sh stop DIR               orderly
#   kafka.sh kill DIR               SIGKILL: no flush, no farewell
#   kafka.sh restart DIR            stop and start on the same port with the same data
#   kafka.sh pause|resume DIR       SIGSTOP and SIGCONT
#   kafka.sh admin DIR CLASS ARGS…  a tool of org.apache.kafka.tools, such as TopicCommand --list
# A broker lives wholly in DIR: data, server.properties, log, pid. It uses PORT and PORT + 1.
# TALLYFLOW_KAFKA_HEAP (default 512m) and TALLYFLOW_KAFKA_JVM replace the JVM's flags, for benchmarks say.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

KAFKA_VERSION=4.4.0
KAFKA_SOURCE="$TF_ROOT/integration-tests/kafka"
KAFKA_HOME="$TALLYFLOW_CACHE/kafka-$KAFKA_VERSION"
KAFKA_CLUSTER_ID=dGFsbHlmbG93LWJyb2tlcg # any 22 characters of URL-safe base64
READY_SECONDS=90

# Compiled by C1 only, serial collector, class-data archive: ready in a third of the time, with half the memory.
java_command() { # CLASS ARGS… -> the array JAVA
  local classpath
  local -a jit archive=()
  classpath=$(find "$KAFKA_HOME/lib" -name '*.jar' | LC_ALL=C sort | paste -sd:)
  read -r -a jit <<<"${TALLYFLOW_KAFKA_JVM:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}"
  # A stale archive (Java was updated, the cache was moved) is ignored by the JVM.
  [ ! -s "$KAFKA_HOME/broker.jsa" ] ||
    archive=("-XX:SharedArchiveFile=$KAFKA_HOME/broker.jsa" -Xlog:cds=off -Xlog:cds+dynamic=off)
  JAVA=(env MALLOC_ARENA_MAX=2 java "-Xmx${TALLYFLOW_KAFKA_HEAP:-512m}" "${jit[@]}" -XX:-UsePerfData "${archive[@]}"
    "-Dlog4j2.configurationFile=$KAFKA_SOURCE/log4j2.yaml" -cp "$classpath" "$@")
}

write_config() { # DIR PORT
  cat >"$1/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$2
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$(($2 + 1))
log.dirs=$1/data
num.network.threads=2
num.io.threads=4
auto.create.topics.enable=false
# one node
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# small and quick
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.num.partitions=4
log.segment.bytes=67108864
# the default of 128 MiB is allocated at once
log.cleaner.dedupe.buffer.size=8388608
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
controlled.shutdown.max.retries=1
# After SIGKILL a restart is refused (DUPLICATE_BROKER_REGISTRATION) until the dead broker's session has ended.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
PROPERTIES
}

# Formatting costs a JVM start, so it is done once and copied; only meta.properties belongs to one node.
make_template() {
  local work
  [ ! -d "$KAFKA_HOME/template" ] || return 0
  work=$(mktemp -d "$KAFKA_HOME/format.XXXXXX")
  write_config "$work" 9092
  java_command kafka.tools.StorageTool format -t "$KAFKA_CLUSTER_ID" -c "$work/server.properties"
  "${JAVA[@]}" >"$work/log" 2>&1 || { cat "$work/log" >&2; rm -rf "$work"; die "the storage could not be formatted"; }
  mv -T "$work/data" "$KAFKA_HOME/template"
  rm -rf "$work"
}
copy_template() { # DATA_DIR
  [ ! -e "$1/meta.properties" ] || return 0
  mkdir -p "$1"
  cp -r "$KAFKA_HOME/template/." "$1/"
  printf 'version=1\ncluster.id=%s\nnode.id=1\ndirectory.id=%s\n' "$KAFKA_CLUSTER_ID" \
    "$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d =)" >"$1/meta.properties"
}

launch() { # DIR PORT CLASS-ARCHIVE-TO-WRITE(or empty): starts the broker of DIR and waits until it serves
  local dir="$1" port="$2"
  wait_port_free "$port"
  wait_port_free $((port + 1))
  write_config "$dir" "$port"
  copy_template "$dir/data"
  java_command kafka.Kafka "$dir/server.properties"
  [ -z "$3" ] || JAVA=("${JAVA[@]:0:3}" "-XX:ArchiveClassesAtExit=$3" "${JAVA[@]:3}")
  # A session of its own: an interrupt at the terminal reaches the script, which then stops the broker in order.
  # No inherited descriptors: a lock or a test's output pipe must not be held open by it.
  setsid "${JAVA[@]}" >>"$dir/log" 2>&1 </dev/null 8>&- 9>&- &
  proc_record $! "$dir/pid"
  wait_ready "$dir" "$port"
  echo "127.0.0.1:$port" >"$dir/address"
}
wait_ready() { # DIR PORT
  local deadline=$((SECONDS + READY_SECONDS))
  until port_open "$2"; do
    proc_alive "$1/pid" || { tail -n 30 "$1/log" >&2; die "the broker in $1 ended before it was ready"; }
    [ "$SECONDS" -lt "$deadline" ] || { tail -n 30 "$1/log" >&2; die "the broker in $1 was not ready in $READY_SECONDS s"; }
    sleep 0.05
  done
}
# A big JVM holds its ports for a moment after SIGKILL; a start that saw them open would call itself ready.
wait_port_free() { # PORT
  local deadline=$((SECONDS + 10))
  while port_open "$1"; do
    [ "$SECONDS" -lt "$deadline" ] || die "port $1 is taken"
    sleep 0.05
  done
}

fetch() {
  [ ! -e "$KAFKA_HOME/ready" ] || return 0
  mkdir -p "$KAFKA_HOME"
  (
    flock 8
    [ ! -e "$KAFKA_HOME/ready" ] || exit 0
    say "fetching Apache Kafka $KAFKA_VERSION"
    mvn -B -q -Dstyle.color=never -f "$KAFKA_SOURCE/pom.xml" dependency:copy-dependencies \
      -DincludeScope=runtime "-DoutputDirectory=$KAFKA_HOME/lib" >&2
    make_template
    # The archive is made by running one broker through, with a client.
    local work port
    work=$(mktemp -d "$KAFKA_HOME/archive.XXXXXX")
    port=$(free_port)
    trap 'proc_end "$work/pid" KILL 10; rm -rf "$work"' EXIT
    launch "$work" "$port" "$KAFKA_HOME/broker.jsa.new"
    java_command org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --create --topic warm --partitions 1
    "${JAVA[@]}" >/dev/null
    proc_end "$work/pid" TERM 60
    mv -f "$KAFKA_HOME/broker.jsa.new" "$KAFKA_HOME/broker.jsa"
    touch "$KAFKA_HOME/ready"
  ) 8>"$KAFKA_HOME/lock"
}

start() { # DIR [PORT]
  fetch
  proc_alive "$1/pid" || launch "$1" "${2:-$(cat "$1/port" 2>/dev/null || free_port)}" ""
  sed 's/.*://' "$1/address" >"$1/port"
  cat "$1/address"
}

command="${1:-help}"
dir="${2:-}"
case "$command" in
  fetch) fetch; exit ;;
  start) [ -z "$dir" ] || mkdir -p "$dir" ;;
  stop | kill | restart | pause | resume | admin) ;;
  *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
[ -n "$dir" ] || die "$command needs the broker's folder"
[ -d "$dir" ] || die "$dir is no folder"
dir="$(cd "$dir" && pwd)"
case "$command" in
  start) start "$dir" "${3:-}" ;;
  stop) proc_end "$dir/pid" TERM 20 ;;
  kill) proc_end "$dir/pid" KILL 10 ;;
  restart) proc_end "$dir/pid" TERM 20; start "$dir" ;;
  pause) kill -STOP "$(proc_pid "$dir/pid")" ;;
  resume) kill -CONT "$(proc_pid "$dir/pid")" ;;
  admin)
    class="${3:?a class of org.apache.kafka.tools}"; shift 3
    java_command "-Dtallyflow.broker.log=WARN" "org.apache.kafka.tools.$class" --bootstrap-server "$(cat "$dir/address")" "$@"
    exec "${JAVA[@]}" ;;
esac

#!/usr/bin/env bash
# Installs what building and testing needs and is missing. Debian or Ubuntu, as root or with sudo.
#   scripts/setup.sh
# Rust is the one thing that is asked for and not installed. cargo-nextest and cargo-deny go into the cache folder
# ($TALLYFLOW_CACHE, default ~/.cache/tallyflow): nothing of the user's own Rust or Python changes.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

RUST_MINIMUM=1.95
NEXTEST_VERSION=0.9.148
DENY_VERSION=0.20.2
JAVA_MINIMUM=17

has() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # MINIMUM VERSION
deb_installed() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

java_good() {
  local version
  version=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
  [ -n "$version" ] && [ "$version" -ge "$JAVA_MINIMUM" ]
}

missing_packages() { # one Debian package name a line
  has cc || echo gcc
  has c++ || echo g++
  has make || echo make
  has pkg-config || echo pkg-config
  has curl || echo curl
  has kcat || echo kcat
  has flock || echo util-linux
  deb_installed libclang-dev || echo libclang-dev # bindgen reads RocksDB's header with it
  pkg-config --exists libssl 2>/dev/null || echo libssl-dev
  java_good || echo "openjdk-$JAVA_MINIMUM-jre-headless"
  has mvn || echo maven # fetches the Kafka broker that the tests run against
  python3 -m pip --version >/dev/null 2>&1 || echo python3-pip
}

install_packages() {
  local -a packages as_root=()
  mapfile -t packages < <(missing_packages)
  [ ${#packages[@]} -gt 0 ] || return 0
  has apt-get || die "please install (Debian's names): ${packages[*]}"
  if [ "$(id -u)" != 0 ]; then
    has sudo || die "please install as root: apt-get install ${packages[*]}"
    as_root=(sudo)
  fi
  say "installing ${packages[*]}"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
  mapfile -t packages < <(missing_packages)
  [ ${#packages[@]} -eq 0 ] || die "still missing after the installation: ${packages[*]}"
}

check_rust() {
  local version
  has cargo || die "Rust $RUST_MINIMUM or later is needed and no cargo was found: install it with rustup"
  version=$(cd "$TF_ROOT" && rustc --version | cut -d' ' -f2)
  at_least "$RUST_MINIMUM" "$version" ||
    die "Rust $RUST_MINIMUM or later is needed, this is $version: run 'rustup update stable'"
  if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    has rustup || die "the Rust components rustfmt and clippy are needed"
    rustup component add rustfmt clippy >&2
  fi
}

# The tools come as Python wheels that hold the bare program. --target leaves the system's Python alone and is therefore
# also allowed where pip is "externally managed".
install_tool() { # PROGRAM VERSION
  local folder="$TALLYFLOW_CACHE/tools/$1-$2" fresh
  [ ! -x "$folder/bin/$1" ] || return 0
  say "fetching $1 $2"
  mkdir -p "$TALLYFLOW_CACHE/tools"
  fresh=$(mktemp -d "$TALLYFLOW_CACHE/tools/new.XXXXXX")
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --target "$fresh" "astral-dev-toolchain-$1==$2" >&2
  [ -x "$fresh/bin/$1" ] || die "$1 $2 was fetched but holds no program"
  rm -rf "$folder"
  mv -T "$fresh" "$folder"
}

tool_path() { echo "$TALLYFLOW_CACHE/tools/cargo-nextest-$NEXTEST_VERSION/bin:$TALLYFLOW_CACHE/tools/cargo-deny-$DENY_VERSION/bin"; }

setup() {
  has cargo || [ ! -x "$HOME/.cargo/bin/cargo" ] || export PATH="$HOME/.cargo/bin:$PATH"
  check_rust
  install_packages
  install_tool cargo-nextest "$NEXTEST_VERSION"
  install_tool cargo-deny "$DENY_VERSION"
  PATH="$(tool_path):$PATH"
  export PATH
}

# Sourced by test.sh for the functions and the PATH.
[ "${BASH_SOURCE[0]}" != "$0" ] || { setup; say "everything that is needed is here"; }

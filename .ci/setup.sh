# Brings a bare machine to where `cargo build` works: C compiler, curl, the pinned Rust toolchain.
#
# Sourced by ./run and ./test, which have set the shell options and stand in the repository root.
# Whatever is already there is left alone, and then nothing is fetched: both commands also work
# without a network once they have worked with one.
# shellcheck shell=bash

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\033[1m' green=$'\033[32m' red=$'\033[31m' plain=$'\033[0m'
else
    bold='' green='' red='' plain=''
fi

headline() { printf '%s== %s%s\n' "$bold" "$*" "$plain"; }
success() { printf '%s%s%s\n' "$green" "$*" "$plain"; }
complain() { printf '%s%s%s\n' "$red" "$*" "$plain" >&2; }

# The root's own file: one place names the toolchain, for cargo, for the checks and for us.
pinned_toolchain() { sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml; }

# A compiler that finds its headers and libraries, not merely a program called cc.
c_compiler_works() {
    command -v cc >/dev/null 2>&1 || return 1
    printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' |
        cc -x c -o /dev/null - >/dev/null 2>&1
}

has_rust() {
    command -v cargo >/dev/null 2>&1 || return 1
    if command -v rustup >/dev/null 2>&1; then
        # Not `grep -q`: it would leave the pipe early, and rustup would report that as a failure.
        rustup toolchain list | grep "^$(pinned_toolchain)\(-\| \|$\)" >/dev/null
    else
        # A toolchain from elsewhere serves when it is exactly the pinned one.
        [ "$(rustc --version 2>/dev/null | cut -d ' ' -f 2)" = "$(pinned_toolchain)" ]
    fi
}

install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        complain "These are needed and missing, by their Debian names: $*"
        complain "Install them with the package manager of this system and start again."
        exit 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        complain "These packages are needed and missing: $*"
        complain "Install them and start again:  sudo apt-get install --no-install-recommends $*"
        exit 1
    fi
    headline "install $*"
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

setup_packages() {
    local missing=()
    c_compiler_works || missing+=(gcc libc6-dev)
    if ! has_rust; then
        command -v curl >/dev/null 2>&1 || missing+=(curl)
        [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
    fi
    if [ "${#missing[@]}" -gt 0 ]; then
        install_packages "${missing[@]}"
    fi
}

setup_rust() {
    if has_rust; then
        return
    fi
    if ! command -v rustup >/dev/null 2>&1; then
        headline "install rustup"
        curl --proto '=https' --tlsv1.2 -sSf --retry 3 https://sh.rustup.rs |
            sh -s -- -y --default-toolchain none --profile minimal --no-modify-path
        hash -r
    fi
    if ! has_rust; then
        headline "install Rust $(pinned_toolchain)"
        rustup toolchain install "$(pinned_toolchain)" --profile minimal --no-self-update \
            --component rustfmt --component clippy
    fi
}

# rustfmt and clippy, where the toolchain came without them; only ./test asks for them.
setup_components() {
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then
        return
    fi
    if ! command -v rustup >/dev/null 2>&1; then
        complain "This Rust has no rustfmt or no clippy: install both for $(pinned_toolchain), or rustup."
        exit 1
    fi
    headline "install rustfmt and clippy"
    rustup component add --toolchain "$(pinned_toolchain)" rustfmt clippy
}

setup() {
    # In front, as rustup's own set-up puts it: a cargo of the distribution must not hide it.
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    export PATH
    setup_packages
    setup_rust
}

# The clients that only ./test asks for: psql and pgbench from the distribution, psycopg in a folder of the build.
setup_clients() {
    local missing=()
    command -v psql >/dev/null 2>&1 || missing+=(postgresql-client)
    # pgbench comes with the server's package.
    command -v pgbench >/dev/null 2>&1 || missing+=(postgresql)
    command -v python3 >/dev/null 2>&1 || missing+=(python3)
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
    if [ "${#missing[@]}" -gt 0 ]; then
        install_packages "${missing[@]}"
    fi
    clients_python="${CARGO_TARGET_DIR:-target}/clients/bin/python"
    if ! "$clients_python" -c 'import psycopg' >/dev/null 2>&1; then
        headline "install psycopg"
        python3 -m venv "${CARGO_TARGET_DIR:-target}/clients"
        "$clients_python" -m pip install --quiet 'psycopg[binary]==3.2.*'
    fi
}

# The name under which the registry has a module of Python.
distribution_of() {
    case "$1" in
        ibis) echo ibis-framework ;;
        *) echo "$1" ;;
    esac
}

# An interpreter with what the Python package is built with and reads (`python`), in a folder of the build; more packages by name.
setup_python() {
    local -a missing=() distributions=() packages=(maturin pyarrow numpy pandas polars "$@")
    local package
    command -v python3 >/dev/null 2>&1 || missing+=(python3)
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
    if [ "${#missing[@]}" -gt 0 ]; then
        install_packages "${missing[@]}"
    fi
    python="${CARGO_TARGET_DIR:-target}/python/bin/python"
    if [ ! -x "$python" ]; then
        python3 -m venv "${CARGO_TARGET_DIR:-target}/python"
    fi
    for package in "${packages[@]}"; do
        if ! "$python" -c "import $package" >/dev/null 2>&1; then
            headline "install ${packages[*]}"
            for package in "${packages[@]}"; do
                distributions+=("$(distribution_of "$package")")
            done
            "$python" -m pip install --quiet "${distributions[@]}"
            return
        fi
    done
}

# build_wheel PROFILE: builds the Python package with a profile of cargo and installs it for `python`.
build_wheel() {
    local wheels="${CARGO_TARGET_DIR:-target}/wheels/$1"
    rm -rf "$wheels"
    "$python" -m maturin build --quiet --locked --profile "$1" --compression-method stored --out "$wheels" || return 1
    "$python" -m pip install --quiet --no-deps --no-index --force-reinstall "$wheels"/*.whl
}

# check_wheel PROFILE: the wheel is one for any Python from 3.11 on, and for any Linux of its age, and the interpreter has it in an
# environment without anything else.
check_wheel() {
    local wheels="${CARGO_TARGET_DIR:-target}/wheels/$1"
    local bare="${CARGO_TARGET_DIR:-target}/wheels/bare"
    if ! compgen -G "$wheels"/lstore-*-cp311-abi3-manylinux_*.whl >/dev/null; then
        complain "The wheel is bound to this machine: $(basename "$wheels"/*.whl) has no tag of manylinux."
        return 1
    fi
    rm -rf "$bare"
    python3 -m venv "$bare"
    "$bare/bin/python" -m pip install --quiet --no-deps --no-index "$wheels"/*.whl
    "$bare/bin/python" -c 'import lstore; assert lstore.connect().execute("SELECT 6 * 7").fetchall() == [(42,)]' || return 1
    rm -rf "$bare"
}

# The C++ compiler that builds the emulated device, which the tests run the kernels on.
setup_emulator() {
    if ! command -v g++ >/dev/null 2>&1; then
        install_packages g++
    fi
}

#!/bin/sh
# Installs a released binary of Zeph for this machine, after its checksum was verified.
#
#   ZEPH_VERSION      the version, such as 0.1.0 (default: the version of this script)
#   ZEPH_PREFIX       the folder with bin/ and share/ (default: ~/.local)
#   ZEPH_BASE_URL     the address of the releases; a folder is read without a network
#   ZEPH_TARGET       the target, such as x86_64-unknown-linux-musl (default: this machine's)
set -eu

version=${ZEPH_VERSION:-0.1.0}
prefix=${ZEPH_PREFIX:-$HOME/.local}
base=${ZEPH_BASE_URL:-https://example.org/zeph/releases/download}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

machine_target() {
    case "$(uname -m)" in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "no release exists for the processor $(uname -m); build from source: cargo install --path ." ;;
    esac
    case "$(uname -s)" in
        Linux) echo "$machine-unknown-linux-musl" ;;
        Darwin) echo "$machine-apple-darwin" ;;
        *) fail "no release exists for $(uname -s); build from source: cargo install --path ." ;;
    esac
}

# fetch NAME: the file of the release into the temporary folder.
fetch() {
    case "$base" in
        /*) cp "$base/v$version/$1" "$work/$1" || fail "$base/v$version/$1 cannot be read" ;;
        *)
            url="$base/v$version/$1"
            if command -v curl >/dev/null 2>&1; then
                curl --fail --silent --show-error --location --output "$work/$1" "$url"
            elif command -v wget >/dev/null 2>&1; then
                wget --quiet --output-document="$work/$1" "$url"
            else
                fail "neither curl nor wget is installed"
            fi || fail "$url cannot be fetched"
            ;;
    esac
}

# sha256 FILE: its checksum.
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "neither sha256sum nor shasum is installed; the archive cannot be verified"
    fi
}

target=${ZEPH_TARGET:-$(machine_target)}
name="zeph-$version-$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

fetch "$name.tar.gz"
fetch "$name.sha256"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/$name.sha256")
[ -n "$expected" ] || fail "$name.sha256 has no checksum of $name.tar.gz"
actual=$(sha256 "$work/$name.tar.gz")
[ "$actual" = "$expected" ] ||
    fail "the checksum of $name.tar.gz is $actual instead of $expected; nothing is installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/fish/vendor_completions.d" "$prefix/share/zsh/site-functions" "$prefix/share/doc/zeph"
# A running program is replaced by renaming.
cp "$work/$name/zeph" "$prefix/bin/zeph.new"
chmod 755 "$prefix/bin/zeph.new"
mv -f "$prefix/bin/zeph.new" "$prefix/bin/zeph"
cp "$work/$name"/man/man1/*.1 "$prefix/share/man/man1/"
cp "$work/$name/completions/zeph.bash" "$prefix/share/bash-completion/completions/zeph"
cp "$work/$name/completions/zeph.fish" "$prefix/share/fish/vendor_completions.d/zeph.fish"
cp "$work/$name/completions/_zeph" "$prefix/share/zsh/site-functions/_zeph"
cp "$work/$name"/LICENSE-* "$work/$name/THIRD-PARTY-LICENSES.txt" "$prefix/share/doc/zeph/"

echo "installed $("$prefix/bin/zeph" --version) to $prefix/bin/zeph"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "add $prefix/bin to PATH to start it as \`zeph\`" ;;
esac

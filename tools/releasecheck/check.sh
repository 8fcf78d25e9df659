#!/bin/sh
# Tells what a registry of providers would miss in the folder that goreleaser leaves: an archive for each platform, as
# <os>_<arch>, with the program and the licence alone, and the checksums of these and of the manifest, and of no others.
# usage: check.sh <folder> <manifest> <os_arch>...
set -eu

folder=$1 manifest=$2
shift 2
fail() { echo "$*" >&2; exit 1; }

sums=$(echo "$folder"/terraform-provider-flotilla_*_SHA256SUMS)
[ -f "$sums" ] || fail "$sums is not one file with checksums"
name=$(basename "$sums" _SHA256SUMS)
version=${name#terraform-provider-flotilla_}
tr -d ' \n' < "$manifest" | grep -qx '{"version":1,"metadata":{"protocol_versions":\["6.0"\]}}' || fail "$manifest is not of version 1 with the protocol 6.0"
cp "$manifest" "$folder/${name}_manifest.json" # goreleaser gives it this name when it publishes

expected="${name}_manifest.json"
for platform in "$@"; do
    expected="$expected ${name}_$platform.zip"
    program=terraform-provider-flotilla_v$version
    case $platform in windows_*) program=$program.exe ;; esac
    found=$(zipinfo "$folder/${name}_$platform.zip" | awk '/^-/ { print $1, ($4 > 0), $NF }' | LC_ALL=C sort) || exit 1
    [ "$found" = "$(printf '%s\n' '-rw-r--r-- 1 LICENSE' "-rwxr-xr-x 1 $program")" ] ||
        fail "${name}_$platform.zip has to have $program and LICENSE in it, and has: $found"
done
listed=$(awk '{ print $2 }' "$sums" | LC_ALL=C sort)
[ "$listed" = "$(printf '%s\n' $expected | LC_ALL=C sort)" ] || fail "$sums has to have checksums of $expected, and has: $(echo $listed)"
(cd "$folder" && sha256sum --check --quiet --strict "$(basename "$sums")") >&2
echo "$version: $# archives, checksums and manifest are what a registry takes"

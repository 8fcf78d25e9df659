#!/bin/sh
# Has goreleaser make a snapshot of a release, signs it with a key that is made for that alone, and looks into what came
# of it. Called by `make release-check` with GORELEASER, the path of the program, and PLATFORMS: as <os>_<arch>, or "all".
set -eu

config=.build/goreleaser.yml
all=$(awk '/^    targets:/ { within = 1; next } within && $1 == "-" { print $2; next } { within = 0 }' .goreleaser.yml)
[ "$PLATFORMS" != all ] || PLATFORMS=$all
for platform in $PLATFORMS; do
    echo "$all" | grep -qx "$platform" || { echo "$platform is none of the platforms of .goreleaser.yml:" $all >&2; exit 1; }
done
mkdir -p .build
awk -v wanted=" $(echo $PLATFORMS) " '
    /^    targets:/ { within = 1; print; next }
    within && $1 == "-" { if (index(wanted, " " $2 " ")) print; next }
    { within = 0; print }
' .goreleaser.yml > "$config"

"$GORELEASER" check --quiet
skip=sbom
if command -v gpg > /dev/null; then
    GNUPGHOME=$(mktemp -d)
    export GNUPGHOME
    trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT INT TERM
    gpg --batch --quiet --passphrase '' --quick-gen-key 'release check <nobody@example.com>' rsa3072 sign 1d 2> /dev/null
    GPG_FINGERPRINT=$(gpg --batch --with-colons --list-keys 2> /dev/null | awk -F: '$1 == "fpr" { print $10; exit }')
    export GPG_FINGERPRINT
else
    echo 'without gpg nothing is signed'
    skip=sbom,sign
fi
"$GORELEASER" release --config "$config" --snapshot --clean --skip="$skip"
"$(dirname "$0")/check.sh" .build/release terraform-registry-manifest.json $PLATFORMS
if [ "$skip" = sbom ]; then
    sums=$(echo .build/release/*_SHA256SUMS)
    gpg --batch --quiet --verify "$sums.sig" "$sums" 2> /dev/null || { echo "$sums.sig is no signature of $sums" >&2; exit 1; }
    echo "$sums.sig is its detached signature"
fi

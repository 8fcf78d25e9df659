#!/bin/sh
# Records the checksums of all providers for the platforms of the team and of the pipeline. Commit .terraform.lock.hcl afterwards.
set -eu
terraform providers lock -platform=linux_amd64 -platform=linux_arm64 -platform=darwin_arm64 -platform=windows_amd64

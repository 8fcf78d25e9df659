#!/bin/sh
# Puts the metrics of the last apply to a Pushgateway. PUT replaces what the run before put there, so that outdated series
# disappear. NAME keeps apart what several configurations put.
#
#   ./push.sh https://pushgateway.example.com NAME
set -eu
metrics=$(terraform output -raw metrics) # an error here puts nothing
printf '%s\n' "$metrics" | curl --fail --silent --show-error --request PUT --data-binary @- "$1/metrics/job/flotilla/instance/$2"

#!/bin/sh
# HCP Terraform: starts a run of a workspace with auto-apply. Run it every ten minutes: it moves rollouts and repairs drift.
# TFE_TOKEN and WORKSPACE_ID ("ws-...") come from the environment. TFE_ADDRESS is https://app.terraform.io by default.
#
# The workspace is connected to the repository, so that a pull request gets a plan, and the main branch an apply. Set the variable
# FLOTILLA_GIT_TOKEN as a sensitive environment variable.
set -eu
curl --fail --silent --show-error --header "Authorization: Bearer $TFE_TOKEN" --header "Content-Type: application/vnd.api+json" \
  --data "{\"data\": {\"type\": \"runs\", \"attributes\": {\"message\": \"schedule\", \"auto-apply\": true},
    \"relationships\": {\"workspace\": {\"data\": {\"type\": \"workspaces\", \"id\": \"$WORKSPACE_ID\"}}}}}" \
  "${TFE_ADDRESS:-https://app.terraform.io}/api/v2/runs"

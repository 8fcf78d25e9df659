#!/bin/sh
# Applies the main branch by the API of Atlantis, without a pull request. Run it every ten minutes from cron.
# ATLANTIS_URL, ATLANTIS_API_SECRET and REPOSITORY ("platform/fleet") come from the environment.
set -eu
request() {
  curl --fail --silent --show-error --header "X-Atlantis-Token: $ATLANTIS_API_SECRET" --header "Content-Type: application/json" \
    --data "{\"Repository\": \"$REPOSITORY\", \"Ref\": \"main\", \"Type\": \"Github\", \"Projects\": [\"fleet\"]}" "$ATLANTIS_URL/api/$1"
}
request plan
request apply

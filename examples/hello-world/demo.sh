#!/bin/sh
# Applies this example to a local bare repository in a scratch folder, looks at what came of it, breaks
# it and repairs it, and lets a change go through stages. Called by `make demo` with TERRAFORM, the path of Terraform or OpenTofu, and
# PROVIDER, the folder of the provider's binary.
set -eu

example=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/flotilla-demo-XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
page="$scratch.html" # stays, while the folder goes

number=0
# step begins a step: its title, and the thing to look at.
step() {
    number=$((number + 1))
    printf '\n\033[1m%d/10 %s\033[0m\n      Look at: %s\n\n' "$number" "$1" "$2"
}
show() { sed 's/^/    /'; }

# The provider comes from a mirror on this disk, so that nothing is asked of a registry.
platform=$(go env GOOS)_$(go env GOARCH)
for registry in registry.terraform.io registry.opentofu.org; do
    folder="$scratch/mirror/$registry/flotilla/flotilla/0.0.1/$platform"
    mkdir -p "$folder"
    for binary in "$PROVIDER"/terraform-provider-flotilla*; do
        suffix=${binary##*terraform-provider-flotilla}
        cp "$binary" "$folder/terraform-provider-flotilla_v0.0.1$suffix"
    done
done
cat > "$scratch/cli.tfrc" <<CLI
provider_installation {
  filesystem_mirror {
    path = "$scratch/mirror"
  }
}
CLI
export TF_CLI_CONFIG_FILE="$scratch/cli.tfrc" TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1
cp "$example"/*.tf "$scratch"
cd "$scratch"

terraform() { "$TERRAFORM" "$@"; }

# plan makes a plan and prints `changes` of the assignments, and its summary.
plan() {
    terraform plan -no-color -out=plan.out "$@" > plan.txt
    awk '
        /^  # .*flotilla_assignment/ { print substr($2, 1) ":" }
        /changes +=/ { wanted = 1; next }
        wanted && /^ +\]/ { wanted = 0 }
        wanted && /[+-] "/ { sub(/^ +/, "  "); print }
        /changes +=.*known after apply/ { print "  known after apply"; wanted = 0 }
    ' plan.txt | show
    grep -E '^(Plan:|No changes)' plan.txt | show
}

apply() { terraform apply -no-color "$@" plan.out | grep -E '^Apply complete' | show; }

# change edits a file of the configuration.
change() { sed "$1" "$2" > changed && mv changed "$2"; }

printf '%s, with the configuration of examples/hello-world\n' "$(terraform version | head -n 1)"
terraform init -no-color > /dev/null

step "The first plan" "the hosts and policies of each assignment; one host waits for the address of a database"
plan
awk '/^  \+ assignments/, /^    }/' plan.txt | show

step "One apply creates the database and commits each environment" "the commit on the branch dev, and its files"
apply
git -C gitops.git log --format='%h %s' dev | show
git -C gitops.git ls-tree -r --name-only dev | show

step "A rendered folder" "the values in platform-config.yaml, and the object for the agent in reconciler.yaml"
for file in platform-config reconciler; do
    echo "# $file.yaml" | show
    git -C gitops.git show "dev:large/hello-world-app-performance-test/$file.yaml" | show
done

step "A value changes" "the key, the hosts and the config container in the plan"
change 's/"East US"/"East US 2"/' platform.tf
plan
apply

step "Someone changes the repository by hand" "the commit that the plan names, and the file of others that stays"
git clone -q --branch dev gitops.git work
(
    cd work
    sed 's/Large/Tampered/' large/hello-world-app-performance-test/platform-config.yaml > changed
    mv changed large/hello-world-app-performance-test/platform-config.yaml
    git rm -q drone/hello-world-app-functional-test/namespace.yaml
    echo 'Notes of the platform team.' > NOTES.md
    git add -A
    git -c user.name=somebody -c user.email=somebody@example.com commit -qm 'Quick fix by hand'
    git push -q
    git show --stat --format='%h %s' | show
)
plan
apply
git -C gitops.git diff --quiet dev~2 dev -- drone large
git -C gitops.git show dev:NOTES.md | show
git -C gitops.git fsck --strict --no-dangling 2>&1 | show

step "The assignments get new names" "the commit: records change, and no folder"
change '/"flotilla_assignment"/,/^}/ s/= each.key$/= "${each.key}-team"/' main.tf
plan
apply
git -C gitops.git show --stat --format='%h %s' dev | show
git -C gitops.git diff --quiet dev~1 dev -- '*/hello-world-app-*'

step "A rollout: drones first" "the change that is written now, and the one that waits"
cp "$example"/rollout/*.tf .
awk '/^resource/, /^}/' rollout_override.tf | show
terraform apply -no-color -auto-approve | grep -E '^Apply complete' | show
change 's/"Stage"/"Staging"/' platform.tf
plan
apply

step "Until a cluster is ready, nothing changes" "the empty plan, and the warning with the reason"
plan
awk '/Rollout waits/ { found = 1 } found && /waits for/ { print; exit }' plan.txt | show

# report makes a cluster report the tip of the branch as ready.
report() {
    reports="${reports:+$reports, }{\"cluster\": \"$1\", \"commit\": \"$(git -C gitops.git rev-parse stage)\", \"ready\": true}"
    echo "[$reports]" > reports.json
}

step "drone-1 reports that it is ready, then large-1" "the rest of the hosts, and the proven rollout"
report drone-1
plan
apply
report large-1
plan
apply
git -C gitops.git log -2 --reverse --format='%h %s' stage -- drone large | show

step "A page about the fleet" "$page"
cp "$example"/page/*.tf .
terraform apply -no-color -auto-approve | grep -E '^Apply complete' | show
terraform output -raw markdown | head -n 20 | show
terraform output -raw page > "$page"

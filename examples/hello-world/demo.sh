#!/bin/sh
# Applies this example to a local bare repository in a scratch folder, looks at what came of it, breaks
# it and repairs it, and lets a change go through stages. Called by `make demo` with TERRAFORM, the path of Terraform or OpenTofu, and
# PROVIDER, the folder of the provider's binary.
set -eu

example=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/flotilla-demo-XXXXXX")
trap 'rm -rf "$scratch"' EXIT INT TERM
page="$scratch.html" # stays, while the folder goes

say() { printf '\n\033[1m▶ %s\033[0m\n\n' "$*"; }
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

# assignments prints of a plan what it says of the assignments.
assignments() {
    awk '
        /^  # / { wanted = /flotilla_assignment/ }
        /^$/ { wanted = 0 }
        wanted { print }
    '
}

plan() {
    terraform plan -no-color -out=plan.out "$@" > plan.txt
    assignments < plan.txt | show
    grep -E '^(Plan:|No changes)' plan.txt | show
}

say "This is $(terraform version | head -n 1), with the configuration of examples/hello-world"
terraform init -no-color > /dev/null

say "The first plan: the database's address is not known yet, and only the host that it reaches waits for it"
plan
say "Who goes where, and which policy says so (read at plan)"
awk '/^  \+ assignments/, /^    }/' plan.txt | show

say "One apply creates the database, schedules, hydrates, renders and commits, once for each environment"
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show

say "The repository, branch dev"
git -C gitops.git log --format='%h %s%n%n%b' dev | show
git -C gitops.git ls-tree -r --name-only dev | show

say "One rendered folder: large/hello-world-app-performance-test"
for file in namespace policy platform-config reconciler; do
    echo "# $file.yaml" | show
    git -C gitops.git show "dev:large/hello-world-app-performance-test/$file.yaml" | show
done

say "The next plan is empty"
plan

say "One value changes: the plan says which key of which file, where, and by which config container"
sed 's/"East US"/"East US 2"/' platform.tf > changed && mv changed platform.tf
plan
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show

say "Changes by hand: one file changed, another removed, and one added outside of the assignments' folders"
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

say "The plan names what it repairs, and since which commit it differs"
plan
say "The next apply repairs it, in one commit"
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show
git -C gitops.git show --stat --format='%h %s%n%n%b' dev | show
git -C gitops.git diff --quiet dev~2 dev -- drone large
git -C gitops.git show dev:NOTES.md | show
git -C gitops.git fsck --strict --no-dangling 2>&1 | show

say "The assignments get other names: a handover, in which no folder changes"
sed '/"flotilla_assignment"/,/^}/ s/= each.key$/= "${each.key}-team"/' main.tf > changed && mv changed main.tf
plan
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show
git -C gitops.git show --stat --format='%h %s%n%n%b' dev | show
git -C gitops.git diff --quiet dev~1 dev -- '*/hello-world-app-*'

say "Changes of stage shall go to drones first, and further once those are ready"
cp "$example"/rollout/*.tf .
grep -v '^#' rollout.tf | sed '/./,$!d' | show
awk '/^resource/, /^}/' rollout_override.tf | show
terraform apply -no-color -auto-approve | grep -E '^Apply complete' | show

say "One value changes: the canary gets it, and the plan says what waits, and for what"
sed 's/"Stage"/"Staging"/' platform.tf > changed && mv changed platform.tf
plan
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show

say "Until a cluster reports that the canary is ready, there is nothing to do"
plan

# report says that a cluster has the tip of the branch, and is ready.
report() {
    reports="${reports:+$reports, }{\"cluster\": \"$1\", \"commit\": \"$(git -C gitops.git rev-parse stage)\", \"ready\": true}"
    echo "[$reports]" > reports.json
}

say "drone-1 reports that it has the commit, and is ready: the change goes on to the rest"
report drone-1
plan
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show

say "large-1 reports, too: the change is proven everywhere"
report large-1
plan
terraform apply -no-color plan.out | grep -E '^(flotilla_assignment.*complete|Apply complete)' | show
git -C gitops.git log -2 --reverse --format='%h %s' --stat=72 stage -- drone large | show

say "One page about the fleet, as Markdown for a pull request and as HTML"
cp "$example"/page/*.tf .
terraform apply -no-color -auto-approve | grep -E '^Apply complete' | show
terraform output -raw markdown | show
terraform output -raw page > "$page"

say "Done: every change was read before it was made, and each is one commit. The page is in $page"

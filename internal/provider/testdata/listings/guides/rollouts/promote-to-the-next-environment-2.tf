# No version is proven before the first apply of dev.
data "terraform_remote_state" "dev" {
  backend = "local"
  config  = { path = "dev.tfstate" }
}

resource "flotilla_cluster" "drone_7" {
  name         = "drone-7"
  environment  = "dev"
  cluster_type = "drone"
  labels       = { site = "harbour" }
}

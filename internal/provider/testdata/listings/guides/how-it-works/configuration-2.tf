locals {
  cluster_types = [{ name = "drone" }]
}

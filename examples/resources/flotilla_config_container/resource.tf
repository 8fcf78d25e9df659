resource "flotilla_config_container" "east_us" {
  name     = "east-us"
  labels   = { region = "east-us" }
  priority = 10
  data = {
    REGION   = "East US"
    database = { host = "east.example.com", port = 3306 }
  }
}

# References to secrets in a store.
resource "flotilla_config_container" "database" {
  name   = "database"
  labels = { workload = "shop" }
  secrets = {
    DB_PASSWORD = { store = "vault", key = "prod/db", property = "password", version = "3" }
  }
}

resource "flotilla_config_container" "east_us" {
  name     = "east-us"
  labels   = { region = "east-us" }
  priority = 10
  data = {
    REGION   = "East US"
    database = { host = "east.example.com", port = 3306 }
  }
}

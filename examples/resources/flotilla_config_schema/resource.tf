resource "flotilla_config_schema" "database" {
  name   = "database"
  labels = { workload = "hello-world-app" }
  schema = jsonencode({
    type       = "object"
    required   = ["database"]
    properties = { database = { type = "object", properties = { port = { type = "integer" } } } }
  })
}

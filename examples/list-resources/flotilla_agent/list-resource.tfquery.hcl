# In a file such as fleet.tfquery.hcl, beside the configuration of the provider, whose clusters are asked.
list "flotilla_agent" "all" {
  provider = flotilla
}

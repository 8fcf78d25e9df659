resource "flotilla_target_policy" "functional_test" {
  name                       = "functional-test"
  environment                = "dev"
  workspace                  = "kaizen-app-team"
  deployment_target_selector = { match_labels = { purpose = "functional-test" } }
  cluster_type_selector      = { expression = "region in (east-us, west-us), !gpu" }
  tolerations                = [{ key = "edge", operator = "Exists" }]
}

resource "flotilla_target_policy" "no_tests_on_large" {
  name                       = "no-tests-on-large"
  environment                = "dev"
  deployment_target_selector = { match_expressions = [{ key = "purpose", operator = "Exists" }] }
  cluster_type_selector      = { match_labels = { size = "large" } }
  effect                     = "exclude"
}

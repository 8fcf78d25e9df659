# The import ID is the JSON of the object.
terraform import flotilla_target_policy.functional_test '{"name":"functional-test","environment":"dev","cluster_type_selector":{"match_labels":{"edge":"true"}}}'

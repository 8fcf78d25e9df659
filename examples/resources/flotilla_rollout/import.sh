# By the values that the clusters were given, as JSON, for a rollout whose state was lost.
terraform import flotilla_rollout.kubernetes '{"store-berlin":"1.31","store-oslo":"1.30","store-porto":"1.30"}'

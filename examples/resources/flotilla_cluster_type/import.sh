# The import ID is the JSON of the object.
terraform import flotilla_cluster_type.drone '{"name":"drone","environment":"dev","labels":{"region":"east-us"},"reconciler":"argocd"}'

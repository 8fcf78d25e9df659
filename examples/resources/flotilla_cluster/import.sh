# The import ID is the JSON of the object.
terraform import flotilla_cluster.drone_7 '{"name":"drone-7","environment":"dev","cluster_type":"drone"}'

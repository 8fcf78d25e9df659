# The import ID is the JSON of the object.
terraform import flotilla_config_schema.database '{"name":"database","schema":"{\"required\":[\"database\"]}"}'

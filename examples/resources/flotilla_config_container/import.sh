# The import ID is the JSON of the object.
terraform import flotilla_config_container.east_us '{"name":"east-us","labels":{"region":"east-us"},"priority":10,"data":{"REGION":"East US"}}'

# Validated only: github.com is recognized by its name.

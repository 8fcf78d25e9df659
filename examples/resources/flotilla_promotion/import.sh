# By the value that was let through last, as JSON: it stays what it is until a candidate goes through.
terraform import flotilla_promotion.stage '{"payments":"1.8.0","reports":"2.1.0"}'

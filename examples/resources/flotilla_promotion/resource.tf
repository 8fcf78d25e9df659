# Stage gets the versions that have proven themselves on dev, on weekdays, in the morning.
resource "flotilla_promotion" "stage" {
  candidate = { payments = "1.8.0", reports = "2.1.0" } # such as flotilla_assignment.dev.proven
  now       = "2026-01-05T09:30:00Z"                    # such as plantimestamp()
  windows = [{
    kind      = "allow"
    schedule  = "0 8 * * 1-5"
    duration  = "4h"
    time_zone = "Europe/Berlin"
  }]
}

output "stage" {
  value = flotilla_promotion.stage.promoted
}

// Package shared groups small packages that all other groups use: access to networks, secrets in text, limits, wording. They
// know nothing of fleets.
package shared

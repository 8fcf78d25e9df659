// Package internal divides Flotilla's code into groups of packages. A package imports only packages of its own group and of the
// groups below it; TestGroupsImportOnlyGroupsBelow has the order.
//
//	provider   the Terraform surface
//	views      pages, reports, metrics and comparisons for people
//	cluster    connections to clusters, agents on them, and their reports
//	delivery   folders, records, commits and pull requests of a GitOps repository
//	rollout    which changes may proceed now
//	engine     from a fleet to rendered folders
//	git        Git repositories and Git hosts
//	shared     small packages that all groups use
//
// Group testing has servers and helpers for tests. Only tests import it.
package internal

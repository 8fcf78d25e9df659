// Package testing groups the servers and helpers of tests, and the tests with real agents. The provider imports none of them.
package testing

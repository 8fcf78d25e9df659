package reconciler

// IsSuspicious is for the tests of what fields reach.
var IsSuspicious = isSuspicious

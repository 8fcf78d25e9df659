package reconciler

// IsSuspicious exports isSuspicious to the tests of settings.
var IsSuspicious = isSuspicious

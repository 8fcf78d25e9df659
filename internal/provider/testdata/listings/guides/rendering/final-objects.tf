# Applied by TestTheGuideShowsChangesOfFinalObjects: it needs a repository of charts.

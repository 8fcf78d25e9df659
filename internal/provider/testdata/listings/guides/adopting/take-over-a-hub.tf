# Applied by TestAHubIsTakenOver: it needs the repository of a hub.

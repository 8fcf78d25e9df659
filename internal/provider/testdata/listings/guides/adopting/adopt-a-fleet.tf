# Applied by TestAFleetIsAdopted: it needs the repository of a fleet.

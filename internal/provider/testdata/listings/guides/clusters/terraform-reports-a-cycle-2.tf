# Applied by TestTheGuideOnOnboardingSaysWhenTerraformFindsACycle: two configurations of the provider need two processes.

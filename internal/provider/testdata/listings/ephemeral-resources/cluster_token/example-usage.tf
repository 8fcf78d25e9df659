# Applied by TestATokenIsInNoState: two configurations of the provider need two processes.

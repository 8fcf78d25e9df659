# Where things run: in each region a cluster type in the cloud, and one for all stores. Prod has a canary besides.

locals {
  regions = {
    dev   = ["eu"]
    stage = ["eu", "us"]
    prod  = ["eu", "us", "asia"]
  }

  cluster_types = concat(
    flatten([
      for environment, regions in local.regions : [
        for region in regions : [
          {
            name        = "cloud-${region}"
            environment = environment
            labels      = { kind = "cloud", region = region }
            reconciler  = "argocd"
          },
          {
            name        = "stores-${region}"
            environment = environment
            labels      = { kind = "edge", region = region }
            taints      = [{ key = "edge", value = "true" }] # only what tolerates it
          },
        ]
      ]
    ]),
    [{
      name        = "canary"
      environment = "prod"
      labels      = { kind = "edge", ring = "canary", region = "eu" }
      taints      = [{ key = "edge", value = "true" }]
    }],
  )

  stores = {
    canary      = ["berlin-lab"]
    stores-eu   = ["berlin", "lisbon", "warsaw"]
    stores-us   = ["austin", "boston"]
    stores-asia = ["tokyo"]
  }

  # Clusters are listed where one of them is to be told apart: by reports, or because something goes to it alone.
  clusters = flatten([
    for type, cities in local.stores : [
      for city in cities : { name = "store-${city}", environment = "prod", cluster_type = type, labels = { city = city } }
    ]
  ])
}
